//! What shadow(5) has about a user: the password, whether it is locked, and until when it and the account hold.

use jiff::civil::{Date, date};
use jiff::{SpanRound, Timestamp, Unit};
use stead_core::call::Failure;
use stead_core::value::{Object, Value};

use super::Properties;
use crate::accounts::{Databases, Record, Settings};
use crate::input::blocked;
use crate::text::Expiry;

const EPOCH: Date = date(1970, 1, 1);

/// The fields of the database.
const PASSWORD: usize = 1;
const LAST_CHANGE: usize = 2;
const MINIMUM_AGE: usize = 3;
const MAXIMUM_AGE: usize = 4;
const WARNING: usize = 5;
const EXPIRY: usize = 7;

/// The day that a field of the database counts from 1970.
pub(crate) fn days(of: Date) -> i64 {
    let round = SpanRound::new().largest(Unit::Day);
    of.since(EPOCH).and_then(|span| span.round(round.days_are_24_hours())).map_or(0, |span| i64::from(span.get_days()))
}

fn day(number: i64) -> Option<Date> {
    EPOCH.checked_add(jiff::Span::new().try_days(number).ok()?).ok()
}

impl Properties<'_> {
    /// What differs of what the instance states about the password.
    pub(super) fn password_differs(&self, found: &Record) -> Vec<&'static str> {
        let stored = found.get(PASSWORD);
        let is_locked = stored.starts_with(['!', '*']);
        let hash = self.password_hash.is_some_and(|hash| stored.trim_start_matches('!') != hash.0);
        let locked = self.locked.is_some_and(|locked| locked != is_locked);
        let expires = self.expires.is_some_and(|expiry| found.get(EXPIRY) != field(expiry));
        let ages = self.ages().map(|(name, at, wanted)| (name, wanted.is_some_and(|days| found.get(at) != age(days))));
        [(Properties::PASSWORD_HASH, hash), (Properties::LOCKED, locked), (Properties::EXPIRES, expires)]
            .into_iter()
            .chain(ages)
            .filter_map(|(name, differs)| differs.then_some(name))
            .collect()
    }

    /// Returns whether it states anything that only that database has.
    pub(super) fn states_password(&self) -> bool {
        let ages = self.ages().into_iter().any(|(_, _, days)| days.is_some());
        self.password_hash.is_some() || self.locked.is_some() || self.expires.is_some() || ages
    }

    fn ages(&self) -> [(&'static str, usize, Option<i32>); 3] {
        [
            (Properties::PASSWORD_MINIMUM_AGE, MINIMUM_AGE, self.password_minimum_age),
            (Properties::PASSWORD_MAXIMUM_AGE, MAXIMUM_AGE, self.password_maximum_age),
            (Properties::PASSWORD_WARNING, WARNING, self.password_warning),
        ]
    }

    /// Changes what differs in memory. A record that is not there is made as useradd makes it, without a password.
    pub(super) fn change_password(&self, databases: &mut Databases, settings: &Settings) -> Result<(), Failure> {
        let name = self.name.0;
        let Some(passwords) = databases.passwords_mut() else {
            return if self.states_password() { Err(no_database()) } else { Ok(()) };
        };
        let mut record = passwords.find(name).unwrap_or_else(|| new_record(name, settings));
        let stored = record.get(PASSWORD).into_owned();
        let hash =
            self.password_hash.map_or_else(|| stored.trim_start_matches('!').to_owned(), |hash| hash.0.to_owned());
        let locked =
            self.locked.unwrap_or_else(|| stored.starts_with('!') && self.password_hash.is_none_or(|_| stored != "!"));
        if self.locked == Some(false) && matches!(hash.as_str(), "" | "*") {
            let message = format!("the user '{name}' has no password; unlocking it would allow login without one");
            return Err(blocked(Properties::LOCKED, format!("{message}. Add 'passwordHash'")));
        }
        // An account without a password must not become one that needs none.
        let locked = locked || hash.is_empty() && stored.starts_with('!');
        let is_locked_by_itself = hash.starts_with('*');
        record.set(PASSWORD, &format!("{}{hash}", if locked && !is_locked_by_itself { "!" } else { "" }));
        if self.password_hash.is_some_and(|hash| stored.trim_start_matches('!') != hash.0) {
            record.set(LAST_CHANGE, &today());
        }
        if let Some(expiry) = self.expires {
            record.set(EXPIRY, &field(expiry));
        }
        for (_, at, wanted) in self.ages() {
            if let Some(days) = wanted {
                record.set(at, &age(days));
            }
        }
        passwords.put(&record);
        Ok(())
    }
}

/// The failure that passwords cannot be read.
pub(super) fn no_database() -> Failure {
    blocked(
        Properties::PASSWORD_HASH,
        "there is no /etc/shadow, or this user may not read it; what it holds cannot be compared or set",
    )
}

fn new_record(name: &str, settings: &Settings) -> Record {
    let mut record = Record::new(name, 9);
    record.set(PASSWORD, "!");
    record.set(LAST_CHANGE, &today());
    for (field, days) in [MINIMUM_AGE, MAXIMUM_AGE, WARNING].into_iter().zip(settings.password_ages()) {
        record.set(field, days);
    }
    record
}

fn today() -> String {
    days(Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date()).to_string()
}

fn field(expiry: Expiry<'_>) -> String {
    expiry.day.map(|day| days(day).to_string()).unwrap_or_default()
}

/// A number of days; -1 is none.
fn age(days: i32) -> String {
    if days < 0 { String::new() } else { days.to_string() }
}

/// Extends a state with what the database holds; of the password only whether it is locked.
pub(super) fn report(found: &Record, state: &mut Object) {
    state.insert(Properties::LOCKED.to_owned(), Value::from(found.get(PASSWORD).starts_with(['!', '*'])));
    let expires =
        found.get(EXPIRY).parse().ok().and_then(day).map_or_else(|| "never".to_owned(), |day| day.to_string());
    state.insert(Properties::EXPIRES.to_owned(), Value::from(expires));
    for (name, at) in [
        (Properties::PASSWORD_MINIMUM_AGE, MINIMUM_AGE),
        (Properties::PASSWORD_MAXIMUM_AGE, MAXIMUM_AGE),
        (Properties::PASSWORD_WARNING, WARNING),
    ] {
        let days = found.get(at).parse::<i64>().unwrap_or(-1);
        state.insert(name.to_owned(), Value::from(days));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        for (date, number) in [(date(1970, 1, 1), 0), (date(1970, 3, 1), 59), (date(2026, 11, 22), 20779)] {
            assert_eq!((days(date), day(number)), (number, Some(date)));
        }
    }
}
