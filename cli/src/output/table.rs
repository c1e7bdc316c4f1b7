//! Tables for people: aligned columns, two spaces apart, at most [`WIDTH_MAX`] characters wide.

use std::io::{self, Write};

use super::{Paint, WIDTH_MAX, wrapped};

/// Between two columns.
const GAP: &str = "  ";

/// On which side a column's cells are flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Align {
    Left,
    Right,
}

/// The head of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Column {
    /// What it shares with its neighbours, told above them once; may be empty.
    pub(crate) group: &'static str,
    /// Its own name.
    pub(crate) name: &'static str,
    pub(crate) align: Align,
}

impl Column {
    pub(crate) const fn left(name: &'static str) -> Self {
        Self { group: "", name, align: Align::Left }
    }

    pub(crate) const fn right(name: &'static str) -> Self {
        Self { group: "", name, align: Align::Right }
    }

    pub(crate) const fn within(self, group: &'static str) -> Self {
        Self { group, ..self }
    }
}

/// A table. Its last column, if it is flush left, breaks at spaces where the line would be too long;
/// a word that does not fit there begins a line of its own, and goes on in the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: impl Into<Vec<Column>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    /// Rows of a name and what there is to say about it, without a head.
    pub(crate) fn of_facts() -> Self {
        Self::new([Column::left(""), Column::left("")])
    }

    /// Adds a row; it has as many cells as there are columns.
    pub(crate) fn row(&mut self, cells: impl Into<Vec<String>>) {
        let cells = cells.into();
        debug_assert_eq!(cells.len(), self.columns.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// Adds a row to a table of facts.
    pub(crate) fn fact(&mut self, name: &str, what: impl Into<String>) {
        self.row([name.to_owned(), what.into()]);
    }

    /// Leaves out the column of this group and name, if the table is too wide with it.
    pub(crate) fn drop_if_wide(&mut self, group: &str, name: &str) {
        let at = self.columns.iter().position(|c| c.group == group && c.name == name);
        if let Some(at) = at
            && self.width() > WIDTH_MAX
        {
            self.columns.remove(at);
            for row in &mut self.rows {
                row.remove(at);
            }
        }
    }

    /// Writes the table.
    pub(crate) fn write(&self, to: &mut impl Write, paint: Paint) -> io::Result<()> {
        let widths = self.widths();
        if self.columns.iter().any(|column| !column.group.is_empty()) {
            writeln!(to, "{}", paint.strong(self.groups(&widths)))?;
        }
        if self.columns.iter().any(|column| !column.name.is_empty()) {
            let names: Vec<_> = self.columns.iter().map(|column| column.name).collect();
            writeln!(to, "{}", paint.strong(self.line(&names, &widths)))?;
        }
        for row in &self.rows {
            self.write_row(to, row, &widths)?;
        }
        Ok(())
    }

    /// A row, with as many more lines as its last cell needs.
    fn write_row(&self, to: &mut impl Write, row: &[String], widths: &[usize]) -> io::Result<()> {
        let Some((last, cells)) = row.split_last() else { return Ok(()) };
        let first_line = |last: &str| {
            let line: Vec<&str> = cells.iter().map(String::as_str).chain([last]).collect();
            self.line(&line, widths)
        };
        if self.columns.last().is_none_or(|column| column.align == Align::Right) {
            return writeln!(to, "{}", first_line(last));
        }
        let indent: usize = widths[..cells.len()].iter().map(|width| width + GAP.len()).sum();
        let room = WIDTH_MAX.saturating_sub(indent).max(1);
        let pieces = wrapped(last, room);
        if pieces.iter().all(|piece| piece.chars().count() <= room) {
            writeln!(to, "{}", first_line(&pieces[0]))?;
            return write_lines(to, indent, &pieces[1..]);
        }
        writeln!(to, "{}", first_line(""))?;
        let room = WIDTH_MAX - GAP.len();
        let pieces: Vec<_> = wrapped(last, room).iter().flat_map(|p| chunks(p, room)).collect();
        write_lines(to, GAP.len(), &pieces)
    }

    fn line(&self, cells: &[&str], widths: &[usize]) -> String {
        let mut line = String::new();
        for (at, (cell, column)) in cells.iter().zip(&self.columns).enumerate() {
            if at > 0 {
                line.push_str(GAP);
            }
            let width = widths[at];
            match column.align {
                Align::Left => line.push_str(&format!("{cell:<width$}")),
                Align::Right => line.push_str(&format!("{cell:>width$}")),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }

    /// The line above the heads: each group's name where its first column begins.
    fn groups(&self, widths: &[usize]) -> String {
        let mut line = String::new();
        let mut start = 0;
        let mut before = "";
        for (column, width) in self.columns.iter().zip(widths) {
            if column.group != before && !column.group.is_empty() {
                line.push_str(&" ".repeat(start - line.chars().count()));
                line.push_str(column.group);
            }
            before = column.group;
            start += width + GAP.len();
        }
        line
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<_> = self.columns.iter().map(|c| c.name.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        // Where a group's name is longer than its columns, the last of them makes room.
        let mut at = 0;
        while at < self.columns.len() {
            let group = self.columns[at].group;
            let end = at + self.columns[at..].iter().take_while(|c| c.group == group).count();
            let wide: usize = widths[at..end].iter().sum::<usize>() + GAP.len() * (end - at - 1);
            widths[end - 1] += group.chars().count().saturating_sub(wide);
            at = end;
        }
        widths
    }

    fn width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
    }
}

fn write_lines(to: &mut impl Write, indent: usize, lines: &[String]) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(to, "{}{line}", " ".repeat(indent)))
}

/// The text in pieces of `width` characters.
pub(crate) fn chunks(text: &str, width: usize) -> Vec<String> {
    let chars: Vec<_> = text.chars().collect();
    chars.chunks(width).map(|piece| piece.iter().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(table: &Table) -> String {
        let mut bytes = Vec::new();
        table.write(&mut bytes, Paint::OFF).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn columns_are_aligned_under_their_group() {
        let mut table = Table::new([
            Column::right("attempt"),
            Column::right("low").within("wait"),
            Column::right("high").within("wait"),
            Column::left("at"),
        ]);
        table.row(["1".to_owned(), "0s".to_owned(), "2s".to_owned(), "now".to_owned()]);
        table.row(["2".to_owned(), "1h30m".to_owned(), "2h".to_owned(), "later".to_owned()]);
        assert_eq!(
            printed(&table),
            "         wait\n\
             attempt    low  high  at\n\
             \x20     1     0s    2s  now\n\
             \x20     2  1h30m    2h  later\n"
        );
    }

    #[test]
    fn a_long_last_cell_goes_on_under_itself() {
        let mut table = Table::of_facts();
        table.fact("source", "word ".repeat(30));
        for line in printed(&table).lines() {
            assert!(line.chars().count() <= WIDTH_MAX, "{line}");
            assert!(line.starts_with("source  word") || line.starts_with("        word"), "{line}");
        }
    }

    #[test]
    fn a_word_that_does_not_fit_begins_its_own_line_and_goes_on_in_the_next() {
        let mut table = Table::of_facts();
        table.fact("signature", "a".repeat(95));
        table.fact("key", "b".repeat(128));
        let (a, b) = ("a".repeat(95), "b".repeat(98));
        let expected = format!("signature\n  {a}\nkey\n  {b}\n  {}\n", "b".repeat(30));
        assert_eq!(printed(&table), expected);
    }

    #[test]
    fn a_column_is_left_out_only_where_the_table_is_too_wide() {
        let mut table = Table::new([Column::left("a"), Column::right("b"), Column::right("c")]);
        table.row(["x".repeat(60), "y".repeat(30), "z".repeat(30)]);
        table.drop_if_wide("", "b");
        table.drop_if_wide("", "c");
        assert_eq!(table.columns.len(), 2);
        assert!(printed(&table).lines().all(|line| line.chars().count() <= WIDTH_MAX));
    }
}
