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

    /// The table as it is, or where it is too wide in several that each begin with its first column:
    /// nothing is left out. A group of columns stays together where it can.
    pub(crate) fn folded(self) -> Vec<Self> {
        let widths = self.widths();
        let room = WIDTH_MAX.saturating_sub(widths[0]);
        let wide = |at: &[usize]| at.iter().map(|at| GAP.len() + widths[*at]).sum::<usize>();
        let mut folds: Vec<Vec<usize>> = vec![Vec::new()];
        for group in self.groups_of_columns() {
            let pieces = if wide(&group) <= room {
                vec![group]
            } else {
                group.into_iter().map(|at| vec![at]).collect()
            };
            for piece in pieces {
                let last = folds.len() - 1;
                if !folds[last].is_empty() && wide(&folds[last]) + wide(&piece) > room {
                    folds.push(piece);
                } else {
                    folds[last].extend(piece);
                }
            }
        }
        folds.iter().map(|fold| self.with_columns(fold)).collect()
    }

    /// The places of all columns but the first, those of one group together.
    fn groups_of_columns(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for at in 1..self.columns.len() {
            let group = self.columns[at].group;
            match groups.last_mut() {
                Some(last) if !group.is_empty() && self.columns[last[0]].group == group => {
                    last.push(at);
                }
                _ => groups.push(vec![at]),
            }
        }
        groups
    }

    /// Only the first of the columns, and these.
    fn with_columns(&self, places: &[usize]) -> Self {
        let places: Vec<_> = std::iter::once(0).chain(places.iter().copied()).collect();
        let row = |row: &Vec<String>| places.iter().map(|at| row[*at].clone()).collect();
        Self {
            columns: places.iter().map(|at| self.columns[*at]).collect(),
            rows: self.rows.iter().map(row).collect(),
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
    fn a_table_that_is_too_wide_is_folded_and_keeps_each_column() {
        let group = |name| Column::right(name).within("group");
        let columns = [Column::left("a"), Column::right("b"), group("c"), group("d")];
        let table = |widths: [usize; 4]| {
            let mut table = Table::new(columns);
            table.row(widths.map(|width| "x".repeat(width)));
            table.folded()
        };
        let names = |tables: Vec<Table>| -> Vec<String> {
            let names = |table: Table| table.columns.iter().map(|column| column.name).collect();
            tables.into_iter().map(names).collect()
        };
        assert_eq!(names(table([9, 9, 9, 9])), ["abcd"]);
        assert_eq!(names(table([10, 80, 10, 10])), ["ab", "acd"], "a group stays together");
        assert_eq!(names(table([10, 10, 60, 60])), ["abc", "ad"], "if there is room for it");
        for folded in table([10, 80, 80, 10]) {
            assert!(printed(&folded).lines().all(|line| line.chars().count() <= WIDTH_MAX));
        }
    }
}
