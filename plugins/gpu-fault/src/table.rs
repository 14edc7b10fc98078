//! What a number means: NVIDIA's tables, as `data/` has them.
//!
//! The files are in the plugin as they are and nothing is parsed before it is asked for: a lookup halves
//! the sorted lines until it has its own, so that a call about anything else costs nothing. The headers of
//! the files say where each column comes from. Vendors and clouds disagree about several rows, so an
//! operator may say otherwise: see `settings`.

use crate::{
    action::Action,
    code,
    cursor::{cut, decimal, pieces},
    level::Level,
};

/// Lines sorted by the number that each begins with.
#[derive(Clone, Copy)]
struct Table(&'static str);

const XIDS: Table = Table::of(include_str!("../data/xid.csv"));
const SXIDS: Table = Table::of(include_str!("../data/sxid.csv"));
const NVLINK5: Table = Table::of(include_str!("../data/nvlink5.csv"));

impl Table {
    /// The rows of a file, from the first line that begins with a digit. The compiler looks for it.
    const fn of(file: &'static str) -> Self {
        let bytes = file.as_bytes();
        let mut place = 0;
        while place < bytes.len() {
            if bytes[place].is_ascii_digit() && (place == 0 || bytes[place - 1] == b'\n') {
                return Self(file.split_at(place).1);
            }
            place += 1;
        }
        Self("")
    }

    /// What follows the number in the first line that begins with it.
    fn find(self, number: u32) -> Option<&'static str> {
        self.from(number).next()
    }

    /// What follows the number in each line that begins with it, in order.
    fn from(self, number: u32) -> impl Iterator<Item = &'static str> {
        let (mut low, mut high) = (0, self.0.len());
        // Every line that begins before `low` has a lesser number (or none), every one at or after `high`
        // has this number or a greater one.
        while low < high {
            let (start, end) = self.line_at(low + (high - low) / 2);
            match self.number(start, end) {
                Some(at) if number <= at => high = start,
                _ => low = end,
            }
        }
        let lines = self.0.get(low..).unwrap_or_default().lines();
        lines.map_while(move |line| {
            let (at, rest) = cut(line, ",")?;
            (decimal(at)? == number).then_some(rest)
        })
    }

    /// Where the line that holds this byte begins, and where the next one does.
    fn line_at(self, byte: usize) -> (usize, usize) {
        let bytes = self.0.as_bytes();
        let start = bytes.iter().take(byte).rposition(|it| *it == b'\n');
        let end = bytes.iter().skip(byte).position(|it| *it == b'\n');
        (
            start.map_or(0, |it| it + 1),
            end.map_or(bytes.len(), |it| byte + it + 1),
        )
    }

    fn number(self, start: usize, end: usize) -> Option<u32> {
        let line = self.0.get(start..end)?;
        decimal(cut(line, ",")?.0)
    }
}

/// What is to be done about an Xid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Remedy {
    Known(Action),
    /// The line says whether it is fatal.
    ByWord,
    /// The line says the action itself.
    ByText,
}

/// A row about an Xid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Xid {
    pub(crate) level: Level,
    pub(crate) remedy: Remedy,
    /// As Flyte's rule has it.
    pub(crate) flyte: Level,
    pub(crate) code: &'static str,
    pub(crate) name: Option<&'static str>,
}

impl Xid {
    /// A number of a newer driver, for instance: worth a look and no more.
    const UNKNOWN: Self = Self {
        level: Level::Warn,
        remedy: Remedy::Known(Action::None),
        flyte: Level::Warn,
        code: code::XID,
        name: None,
    };

    fn parse(row: &'static str) -> Option<Self> {
        let mut cells = row.splitn(5, ',');
        let level = Level::from_word(cells.next()?)?;
        let remedy = match cells.next()? {
            "by-word" => Remedy::ByWord,
            "by-text" => Remedy::ByText,
            word => Remedy::Known(Action::from_word(word)?),
        };
        let flyte = Level::from_word(cells.next()?)?;
        let word = cells.next()?;
        Some(Self {
            level,
            remedy,
            flyte,
            code: code::OF_XIDS.into_iter().find(|it| *it == word)?,
            name: cells.next().filter(|name| *name != "Unused"),
        })
    }
}

/// What an Xid means.
pub(crate) fn xid(number: u32) -> Xid {
    XIDS.find(number)
        .and_then(Xid::parse)
        .unwrap_or(Xid::UNKNOWN)
}

/// Whether an `SXid` is known to end what runs on the fabric, and what NVIDIA calls it.
pub(crate) fn sxid(number: u32) -> Option<(bool, &'static str)> {
    let (fatality, name) = cut(SXIDS.find(number)?, ",")?;
    Some((fatality != "non-fatal", name))
}

/// What NVIDIA would look into after an error of `NVLink` 5, by the words of its line.
pub(crate) fn nvlink5(number: u32, unit: &str, info: u32, status: u32) -> Option<&'static str> {
    NVLINK5.from(number).find_map(|row| {
        let mut cells = row.splitn(5, ',');
        let units = cells.next()?;
        let (first, second) = (cells.next()?, cells.next()?);
        let of_row = cells.next()?.strip_prefix("0x")?;
        let is_it = pieces(units, "/").any(|it| it == unit)
            && u32::from_str_radix(of_row, 16) == Ok(status)
            && (fits(info, first) || fits(info, second));
        cells.next().filter(|_| is_it)
    })
}

/// Whether a word has the bits that a pattern names, from 31 to 0.
fn fits(word: u32, pattern: &str) -> bool {
    pattern.len() == 32
        && pattern.bytes().zip((0..32).rev()).all(|(want, bit)| {
            let is_set = (word >> bit) & 1 == 1;
            match want {
                b'0' => !is_set,
                b'1' => is_set,
                _ => true,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a table that are rows.
    fn rows(table: Table) -> Vec<(u32, &'static str)> {
        table
            .0
            .lines()
            .map(|line| {
                let (number, rest) = line.split_once(',').unwrap();
                (number.parse().unwrap(), rest)
            })
            .collect()
    }

    #[test]
    fn every_table_is_sorted_by_number() {
        for table in [XIDS, SXIDS, NVLINK5] {
            assert!(rows(table).is_sorted_by_key(|(number, _)| *number));
            assert!(!rows(table).is_empty());
        }
    }

    #[test]
    fn a_lookup_finds_the_first_row_of_each_number_and_nothing_else() {
        for table in [XIDS, SXIDS, NVLINK5] {
            let rows = rows(table);
            for number in (0..40_000).chain([u32::MAX]) {
                let mut want = rows.iter().filter(|(at, _)| *at == number);
                assert_eq!(table.find(number), want.next().map(|(_, rest)| *rest));
            }
        }
    }

    #[test]
    fn every_row_is_read() {
        for (number, row) in rows(XIDS) {
            assert!(Xid::parse(row).is_some(), "{number}");
        }
        for (number, _) in rows(SXIDS) {
            assert!(sxid(number).is_some(), "{number}");
        }
        for (_, row) in rows(NVLINK5) {
            assert_eq!(row.split(',').count(), 5, "{row}");
        }
    }

    #[test]
    fn the_tables_cover_what_their_sources_list() {
        assert_eq!(rows(XIDS).len(), 176);
        assert_eq!(rows(SXIDS).len(), 92);
        assert_eq!(rows(NVLINK5).len(), 94);
    }

    /// Flyte's rule, as its package has it: what is not here is `warn` and `GpuXidError`.
    #[test]
    fn the_columns_of_flyte_are_flytes() {
        let critical = [48, 62, 63, 64, 74, 79, 94, 95, 109, 119, 120, 140];
        for number in 0..200 {
            let row = xid(number);
            let want = match number {
                13 | 31 | 43 | 45 => Level::User,
                it if critical.contains(&it) => Level::Critical,
                _ => Level::Warn,
            };
            assert_eq!(row.flyte, want, "{number}");
            let want = match number {
                79 => "GpuFallenOffBus",
                48 | 94 | 95 | 140 => "GpuEccUncorrectable",
                63 | 64 => "GpuRowRemapPending",
                74 => "GpuNvlinkError",
                119 | 120 => "GpuGspError",
                _ => "GpuXidError",
            };
            assert_eq!(row.code, want, "{number}");
        }
    }

    #[test]
    fn an_unknown_xid_is_neither_dropped_nor_escalated() {
        assert_eq!(xid(4242), Xid::UNKNOWN);
        assert_eq!(xid(0), Xid::UNKNOWN);
        assert_eq!(sxid(79), None);
    }

    #[test]
    fn an_nvlink5_line_finds_its_row_by_its_words() {
        // The bits of the first layout, and two that it leaves open.
        let info = 0x4000_8021;
        assert_eq!(nvlink5(144, "SAW_MVB", info, 2), Some("CONTACT_SUPPORT"));
        assert_eq!(nvlink5(144, "SAW_MVB", info, 4), Some("IGNORE"));
        assert_eq!(nvlink5(144, "SAW_MVB", info, 3), None);
        assert_eq!(nvlink5(144, "SAW_MVB", 0, 2), None);
        assert_eq!(nvlink5(144, "RLW_CTRL", info, 2), None);
        assert_eq!(nvlink5(79, "SAW_MVB", info, 2), None);
    }
}
