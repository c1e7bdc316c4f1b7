//! Enums whose variants have stable names: catalogues that are listed, printed and looked up.

/// Defines an enum in which each variant has a stable name.
///
/// Besides the enum there are `ALL`, its variants in the order in which they stand, `as_str`, the
/// name of a variant, and a [`Display`](std::fmt::Display) that prints it.
///
/// ```
/// hookproof_core::named_enum! {
///     /// A primary colour.
///     pub enum Colour {
///         /// Like blood.
///         Red = "red",
///         /// Like the sea.
///         DeepBlue = "deep blue",
///     }
/// }
/// assert_eq!(Colour::DeepBlue.as_str(), "deep blue");
/// assert_eq!(Colour::ALL, [Colour::Red, Colour::DeepBlue]);
/// assert_eq!(format!("{:>5}", Colour::Red), "  red");
/// ```
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$doc:meta])*
        $visibility:vis enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        $visibility enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All of them, in their order.
            $visibility const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The stable name.
            #[must_use]
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
