//! The word or name that was probably meant by an unknown one, and how certain that is.

use std::fmt;

/// The words that were probably meant by one that is none of them.
///
/// Guarantees: one is certain only where nothing else can have been meant.
///
/// # Examples
/// ```
/// use stead_core::diag::Meant;
///
/// let keys = ["name", "type", "dependsOn"];
/// assert_eq!(Meant::word("depensOn", keys).and_then(|meant| meant.certain().map(str::to_owned)), Some("dependsOn".to_owned()));
/// // Names of an author differ in a letter by intention.
/// let meant = Meant::name("web3", ["web1", "web2", "db"]).ok_or("nothing is near")?;
/// assert_eq!(meant.certain(), None);
/// assert_eq!(meant.to_string(), "did you mean 'web1' or 'web2'?");
/// assert_eq!(Meant::name("WEB1", ["web1", "web2"]).ok_or("nothing is near")?.certain(), Some("web1"));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meant {
    /// At least one, and several where they are equally near.
    words: Vec<String>,
    is_certain: bool,
}

impl Meant {
    /// One that can only mean this.
    pub fn only(word: impl Into<String>) -> Self {
        Self { words: vec![word.into()], is_certain: true }
    }

    /// One that is near, and may be another.
    pub fn perhaps(word: impl Into<String>) -> Self {
        Self { words: vec![word.into()], is_certain: false }
    }

    /// Of the words of a language, such as keys: certain where no more than one letter is wrong and no other is near.
    pub fn word<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let near = near(wrong, known);
        let is_certain = near.len() == 1 && near.iter().all(|each| each.letters <= 1);
        Self::nearest_of(&near, is_certain)
    }

    /// Of names that an author gave: certain where only the case is wrong.
    pub fn name<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let mut near = near(wrong, known);
        // Names of one or two letters are all near to each other.
        near.retain(|each| each.letters == 0 || wrong.chars().count() > 2);
        let is_certain = near.iter().filter(|each| each.letters == 0).count() == 1;
        Self::nearest_of(&near, is_certain)
    }

    fn nearest_of(near: &[Near<'_>], is_certain: bool) -> Option<Self> {
        /// More do not help.
        const MOST: usize = 3;
        let words = equally_near(near);
        let words: Vec<String> = words.map(|each| each.word.to_owned()).collect();
        (1..=MOST).contains(&words.len()).then_some(Self { words, is_certain })
    }

    /// Returns the words with none of them certain.
    #[must_use]
    pub fn doubted(self) -> Self {
        Self { is_certain: false, ..self }
    }

    /// The words, at least one.
    pub fn into_words(self) -> Vec<String> {
        self.words
    }

    /// The one word that can be written in place of the wrong one.
    pub fn certain(&self) -> Option<&str> {
        self.words.first().map(String::as_str).filter(|_| self.is_certain)
    }
}

impl fmt::Display for Meant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&did_you_mean(&self.words.join("' or '")))
    }
}

/// The hint at a word that was probably meant.
pub fn did_you_mean(meant: &str) -> String {
    format!("did you mean '{meant}'?")
}

/// The candidate that was most likely meant, if one is near enough to be worth a hint and no other is as near.
///
/// Guarantees: it costs little, however long the word and however many candidates there are.
///
/// # Examples
/// ```
/// use stead_core::diag::{did_you_mean, nearest};
///
/// assert_eq!(nearest("depensOn", ["name", "type", "dependsOn"]), Some("dependsOn"));
/// assert_eq!(nearest("colour", ["name", "type", "dependsOn"]), None);
/// assert_eq!(nearest("web3", ["web1", "web2"]), None);
/// assert_eq!(did_you_mean("dependsOn"), "did you mean 'dependsOn'?");
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = near(word, candidates);
    let mut words = equally_near(&near);
    let first = words.next()?;
    words.next().is_none().then_some(first.word)
}

/// The names of several parts that were most likely meant by one, at most two: the one with the fewest other letters, and of
/// those the one that begins most alike; then one that the name goes on from, or that goes on from it.
///
/// # Examples
/// ```
/// use stead_core::diag::likeliest;
///
/// let packages = ["nginx", "nginx-core", "nginx-light", "nano", "postgresql", "postgresql-15"];
/// assert_eq!(likeliest("nginx-lite", packages), ["nginx-light", "nginx"]);
/// assert_eq!(likeliest("postgres", packages), ["postgresql"]);
/// assert_eq!(likeliest("htop", packages), [""; 0]);
/// ```
pub fn likeliest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const LONGEST: usize = 200;
    if name.len() > LONGEST {
        return Vec::new();
    }
    let allowed = (name.chars().count() / 3).max(1);
    let common = |other: &str| name.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    // What is longer or shorter by more has that many other letters at least.
    let is_alike = |other: &&str| name.len().abs_diff(other.len()) <= allowed && other.len() <= LONGEST;
    let (mut near, mut other) = (None, None);
    for candidate in candidates {
        if is_alike(&candidate) {
            let letters = strsim::damerau_levenshtein(name, candidate);
            let rank = (letters, usize::MAX - common(candidate), candidate);
            near = if letters <= allowed { near.into_iter().chain([rank]).min() } else { near };
        }
        let is_whole = name.strip_prefix(candidate).is_some_and(|rest| rest.starts_with(['-', '.', '_']));
        if is_whole || candidate.starts_with(name) {
            other = other.into_iter().chain([(candidate.len(), candidate)]).min();
        }
    }
    let near = near.map(|(_, _, near)| near);
    near.into_iter().chain(other.map(|(_, other)| other).filter(|other| Some(*other) != near)).collect()
}

/// A candidate that is near, and how near; what is less is nearer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Near<'a> {
    distance: usize,
    /// The number of letters that differ.
    letters: usize,
    word: &'a str,
}

/// The first of them, and those that are as near.
fn equally_near<'n, 'a>(near: &'n [Near<'a>]) -> impl Iterator<Item = Near<'a>> + 'n {
    let first = near.first().map(|each| (each.distance, each.letters));
    near.iter().copied().take_while(move |each| Some((each.distance, each.letters)) == first)
}

/// The candidates that are near enough to be worth a hint, the nearest first, each once.
fn near<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<Near<'a>> {
    /// The length in bytes above which a name was not typed, so that none is suggested for it.
    const LONGEST: usize = 200;
    /// Among more, a document is too large for each of its mistakes to be worth the search.
    const MOST: usize = 2000;
    if word.len() > LONGEST {
        return Vec::new();
    }
    // A third of the letters may be wrong: fewer misses typing errors, more suggests strangers.
    let allowed = (word.chars().count() / 3).max(1);
    let lower = word.to_lowercase();
    let candidates = candidates.into_iter().take(MOST).filter(|candidate| candidate.len() <= LONGEST);
    let mut near: Vec<Near<'a>> =
        candidates.map(|candidate| compared(&lower, candidate)).filter(|near| near.distance <= allowed).collect();
    near.sort_unstable();
    near.dedup();
    near
}

/// Returns how near a candidate is; a word that goes on, as `default` in `defaultValue`, is as near as one wrong letter.
fn compared<'a>(word: &str, candidate: &'a str) -> Near<'a> {
    /// Fewer letters start too many words.
    const TELLING: usize = 3;
    let lower = candidate.to_lowercase();
    let shorter = word.len().min(lower.len());
    let goes_on = lower.starts_with(word) || word.starts_with(&*lower);
    let letters = strsim::damerau_levenshtein(word, &lower);
    let distance = if goes_on && shorter >= TELLING { letters.min(1) } else { letters };
    Near { distance, letters, word: candidate }
}
