//! Whose fault a failure was, and whether and where to try again.
//!
//! One statement decides: of those that overlap the failure's time, the worst kind, and of that the one that
//! was recorded first, for what comes first explains the rest. The kinds, from what proves most to what proves
//! least: a device's own fault; the kubelet or the runtime that had no device to give; a driver or a plugin; a
//! fault that stayed within its process; a workload's own error; too few devices. What asks for no action (a
//! warning, a full queue) decides nothing. The first, the fifth and the window are Flyte's rule.
//!
//! It never makes a permanent failure one to try again, and replaces a failure's code only where that says
//! nothing.

use portent_sdk::{Blame, Event, Failure, Retry, Status, Verdict};

use crate::{
    Told,
    action::Action,
    code::Category,
    cursor::{Cursor, pieces},
    settings::{Settings, UserXid},
    statement::Statement,
};

const MINUTE: u64 = 60_000;

/// How long before a failure a cause may have ended, and how long after it may have come to light.
const BEFORE: u64 = 30 * MINUTE;
const AFTER: u64 = 2 * MINUTE;

/// An event is written down a little after it was seen, in whole seconds.
const SKEW: u64 = 10_000;

/// What kind of statement decides, and what its rule is called. What comes first decides first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    FirstCritical,
    DeviceLost,
    Config,
    Contained,
    FirstUser,
    Capacity,
}

/// What the rules are called.
#[cfg(test)]
pub(crate) const RULES: [&str; 6] = [
    Rule::FirstCritical.as_word(),
    Rule::DeviceLost.as_word(),
    Rule::Config.as_word(),
    Rule::Contained.as_word(),
    Rule::FirstUser.as_word(),
    Rule::Capacity.as_word(),
];

impl Rule {
    fn of(statement: &Statement) -> Option<Self> {
        if statement.action == Action::None || statement.status == Status::Cleared {
            return None;
        }
        Some(match statement.category {
            Category::Config => Self::Config,
            Category::UserError => Self::FirstUser,
            Category::Capacity => Self::Capacity,
            Category::Fault if statement.action == Action::RetrySame => Self::Contained,
            Category::Fault if statement.is_effect => Self::DeviceLost,
            Category::Fault => Self::FirstCritical,
        })
    }

    const fn as_word(self) -> &'static str {
        match self {
            Self::FirstCritical => "first-critical",
            Self::DeviceLost => "device-lost",
            Self::Config => "config",
            Self::Contained => "contained",
            Self::FirstUser => "first-user",
            Self::Capacity => "capacity",
        }
    }
}

/// A verdict, and the statement that decided.
pub(crate) fn decide<'a>(
    settings: &Settings,
    failure: &Failure,
    told: &'a [Told<'_>],
) -> Option<(Verdict, &'a Statement)> {
    let candidates = told.iter().filter_map(|it| {
        let rule = Rule::of(&it.statement)?;
        let is_one = is_relevant(it.event, failure.at) && !was_over(it, failure.at, told);
        is_one.then(|| ((rule, recorded(it.event), it.index), it))
    });
    let ((rule, ..), decided) = candidates.min_by_key(|(order, _)| *order)?;
    let statement = &decided.statement;
    Some((verdict(settings, failure, rule, statement), statement))
}

fn verdict(settings: &Settings, failure: &Failure, rule: Rule, statement: &Statement) -> Verdict {
    let code = if is_generic(&failure.code, statement) {
        statement.code
    } else {
        &failure.code
    };
    let retry = match statement.action {
        _ if failure.permanent => Retry::NotAtAll,
        Action::RetrySame => Retry::SamePlace,
        action if action.leaves() => Retry::Elsewhere,
        // A container that cannot start will not start the next time.
        _ if statement.is_effect => Retry::NotAtAll,
        _ => Retry::NoOpinion,
    };
    let blame = match rule {
        Rule::FirstUser => blame_of_user(settings, failure, statement),
        _ => Blame::Platform,
    };
    let message = match failure.message.as_str() {
        "" => statement.message.clone(),
        message => [&statement.message, ". ", message].concat(),
    };
    let verdict = Verdict::new(code, message, blame, retry).attribute("rule", rule.as_word());
    if !statement.action.leaves() {
        return verdict;
    }
    let mut verdict = verdict;
    if let Some(node) = statement.find("node") {
        verdict = verdict.avoid("node", node);
    }
    let device = ["uuid", "pci", "device", "gpu_index"]
        .into_iter()
        .find_map(|it| statement.find(it));
    for device in device.into_iter().flat_map(|it| pieces(it, ", ")) {
        verdict = verdict.avoid("device", device);
    }
    verdict
}

/// Flyte's newest version blames the workload where the failure's code says nothing; the ones before it left
/// the blame as it was.
fn blame_of_user(settings: &Settings, failure: &Failure, statement: &Statement) -> Blame {
    let is_by_xid = statement.find("xid").is_some() || statement.find("sxid").is_some();
    let says_nothing = is_generic(&failure.code, statement) || failure.blame == Blame::Unknown;
    match settings.user_xid {
        _ if !is_by_xid => Blame::Workload,
        UserXid::Workload if says_nothing => Blame::Workload,
        _ => failure.blame,
    }
}

/// When it was first recorded, else first seen.
fn recorded(event: &Event) -> u64 {
    [event.created, event.first_seen, event.last_seen]
        .into_iter()
        .find(|it| *it != 0)
        .unwrap_or(0)
}

/// Whether what an event says may have to do with a failure. Nothing is known of an event without a time, or of
/// one that ended before it began; a failure at an unknown time may be due to anything.
fn is_relevant(event: &Event, at: u64) -> bool {
    let first = recorded(event);
    let last = if event.last_seen == 0 {
        first
    } else {
        event.last_seen
    };
    if at == 0 {
        return true;
    }
    first != 0
        && first <= last.saturating_add(SKEW)
        && first <= at.saturating_add(AFTER)
        && at.saturating_sub(BEFORE) <= last.max(first)
}

/// Whether it was over before the failure.
fn was_over(it: &Told<'_>, at: u64, told: &[Told<'_>]) -> bool {
    told.iter().any(|end| {
        let (over, what) = (&end.statement, &it.statement);
        let is_its_code = over.code == what.code || over.ends.contains(&what.code);
        over.status == Status::Cleared
            && over.category == what.category
            && is_its_code
            && (over.key.is_empty() || over.key == what.key)
            && it.event.last_seen <= end.event.last_seen
            && (at == 0 || recorded(end.event) <= at)
    })
}

/// Whether a failure's code says nothing: Flyte's list, an exit status, and what the kubelet calls the refusal
/// that the statement explains.
fn is_generic(code: &str, statement: &Statement) -> bool {
    const NOTHING: [&str; 5] = ["", "Unknown", "UnknownError", "Error", "Interrupted"];
    const REFUSED: [&str; 5] = [
        "UnexpectedAdmissionError",
        "CreateContainerError",
        "RunContainerError",
        "ContainerCannotRun",
        "StartError",
    ];
    let is_refusal = REFUSED.contains(&code) || code.starts_with("OutOf");
    NOTHING.contains(&code) || is_exit_status(code) || (statement.is_effect && is_refusal)
}

/// `137`, `ExitCode1`, `exit_code_137`.
fn is_exit_status(code: &str) -> bool {
    let code = code.to_ascii_lowercase();
    let mut at = Cursor(&code);
    let separator = |at: &mut Cursor<'_>| {
        let _ = at.maybe(" ") || at.maybe("_") || at.maybe("-");
    };
    if at.maybe("exit") {
        separator(&mut at);
        if !at.maybe("code") {
            return false;
        }
        separator(&mut at);
    }
    let digits = at.while_(|byte| byte.is_ascii_digit());
    !digits.is_empty() && at.0.is_empty()
}

#[cfg(test)]
mod tests;
