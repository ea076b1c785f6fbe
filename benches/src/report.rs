//! The table of a run, as Markdown.

use std::io::Write;

/// One line of the table.
pub(crate) struct Row {
    name: &'static str,
    bar: &'static str,
    value: f64,
    spread: Option<(f64, f64)>,
}

impl Row {
    /// The median of several rounds, with the least and the most.
    pub(crate) fn median(name: &'static str, bar: &'static str, mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let spread = values.first().copied().zip(values.last().copied());
        Self { name, bar, value: values[values.len() / 2], spread }
    }

    /// A figure measured once.
    pub(crate) fn single(name: &'static str, bar: &'static str, value: f64) -> Self {
        Self { name, bar, value, spread: None }
    }
}

/// A run's table.
pub(crate) struct Report {
    pub(crate) rows: Vec<Row>,
    /// Of the machine before the run: what others do.
    before: Option<f64>,
    /// At the end of each round: the load itself is in it.
    during: Vec<Option<f64>>,
}

impl Report {
    pub(crate) fn new(before: Option<f64>, during: Vec<Option<f64>>) -> Self {
        Self { rows: Vec::new(), before, during }
    }

    pub(crate) fn print(&self) {
        // A reader that went away is no error.
        let _ = self.write(&mut std::io::stdout().lock());
    }

    fn write(&self, out: &mut impl Write) -> std::io::Result<()> {
        let before = self.before.unwrap_or(f64::NAN);
        let during = self.during.iter().flatten().copied().fold(0.0, f64::max);
        let judged = if before <= 10.0 { "judged" } else { "unjudged: the machine was busy" };
        writeln!(
            out,
            "CPU pressure (avg10) before the run: {before:.0} % ({judged}); under its load: {during:.0} %\n"
        )?;
        writeln!(out, "| work | bar | median | least to most |\n| --- | --- | --- | --- |")?;
        for row in &self.rows {
            let spread = row.spread.map_or(String::new(), |(least, most)| format!("{least:.2} to {most:.2}"));
            writeln!(out, "| {} | {} | {:.2} | {spread} |", row.name, row.bar, row.value)?;
        }
        Ok(())
    }
}
