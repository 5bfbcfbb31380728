//! `name` and `name = value` in an attribute's brackets, and what to say of those that nobody knows.

use quote::ToTokens;
use syn::{
    Error, Expr, ExprLit, Ident, Lit, LitStr, Result, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream},
    punctuated::Punctuated,
};

/// One setting as it was written.
pub(crate) struct Setting {
    pub(crate) name: Ident,
    pub(crate) value: Option<Expr>,
}

impl Parse for Setting {
    fn parse(input: ParseStream) -> Result<Self> {
        // `crate` is a keyword.
        let name = input.call(Ident::parse_any)?;
        let value = if input.parse::<Option<Token![=]>>()?.is_some() { Some(input.parse()?) } else { None };
        Ok(Self { name, value })
    }
}

impl Setting {
    /// The error at this setting's value, or at its name where there is none.
    pub(crate) fn error(&self, message: impl std::fmt::Display) -> Error {
        match &self.value {
            Some(value) => Error::new_spanned(value, message),
            None => Error::new_spanned(&self.name, message),
        }
    }

    /// A text that is not blank.
    pub(crate) fn text(&self) -> Result<LitStr> {
        match self.value.as_ref().and_then(literal) {
            Some(Lit::Str(text)) if !text.value().trim().is_empty() => Ok(text.clone()),
            _ => Err(self.error(format_args!("write a text: {} = \"…\"", self.name))),
        }
    }

    /// A flag is on by being there.
    pub(crate) fn switch(&self) -> Result<bool> {
        match (&self.value, self.value.as_ref().and_then(literal)) {
            (None, _) => Ok(true),
            (Some(_), Some(Lit::Bool(on))) => Ok(on.value),
            (Some(_), _) => Err(self.error(format_args!("`{}` is a flag: write it without a value", self.name))),
        }
    }

    /// The error for a name that is none of those known.
    pub(crate) fn unknown(&self, what: &str, known: &[&str]) -> Error {
        let name = self.name.to_string();
        let hint = nearest(&name, known).map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
        let message = format!("there is no {what} `{name}`{hint} (known are {})", known.join(", "));
        Error::new_spanned(&self.name, message)
    }
}

/// Settings separated by commas, each at most once.
pub(crate) fn parse(input: ParseStream) -> Result<Vec<Setting>> {
    let settings: Vec<Setting> = Punctuated::<Setting, Token![,]>::parse_terminated(input)?.into_iter().collect();
    for (index, setting) in settings.iter().enumerate() {
        if settings.iter().take(index).any(|before| before.name == setting.name) {
            return Err(Error::new_spanned(&setting.name, format!("`{}` is set twice", setting.name)));
        }
    }
    Ok(settings)
}

/// The literal that an expression is, through the invisible groups that macros put around it.
pub(crate) fn literal(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        Expr::Group(group) => literal(&group.expr),
        _ => None,
    }
}

/// Collects errors, so that all of them are shown at once.
#[derive(Default)]
pub(crate) struct Errors(Option<Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(Error::new_spanned(tokens, message));
    }

    /// The value, or `None` and the error kept.
    pub(crate) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    pub(crate) fn finish<T>(self, value: T) -> Result<T> {
        self.0.map_or(Ok(value), Err)
    }
}

/// The known name that differs least, if a slip of the pen can explain the difference.
fn nearest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let most = (name.chars().count() / 3).max(1);
    let distances = known.iter().map(|candidate| (distance(name, candidate), *candidate));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, near)| near)
}

/// How many letters must be put in, taken out or changed.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for ((j, to), (above_left, above)) in b.chars().enumerate().zip(row.iter().zip(row.iter().skip(1))) {
            let left = next.get(j).copied().unwrap_or(usize::MAX - 1);
            next.push((above_left + usize::from(from != to)).min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
