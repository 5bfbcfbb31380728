//! `#[tool(…)]`: the flags of a tool.

use std::time::Duration;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Expr, Lit, LitStr, Path, Result, parse::Parser};

use crate::settings::{self, Errors, Setting, literal};

const KNOWN: &[&str] = &[
    "sensitive",
    "read_only",
    "concurrent",
    "idempotent",
    "return_direct",
    "timeout",
    "tags",
    "name",
    "description",
    "crate",
];

const DURATION: &str = r#"write a duration such as "5s" (with ms, s, m or h)"#;

/// What stands in the brackets of `#[tool(…)]`.
#[derive(Default)]
pub(crate) struct Flags {
    sensitive: bool,
    read_only: bool,
    concurrent: bool,
    idempotent: bool,
    return_direct: bool,
    timeout: Option<Duration>,
    tags: Vec<LitStr>,
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    krate: Option<Path>,
}

impl Flags {
    /// Reads them; what is wrong is kept in `errors`.
    pub(crate) fn read(tokens: TokenStream, errors: &mut Errors) -> Self {
        let mut flags = Self::default();
        for setting in errors.keep(settings::parse.parse2(tokens)).unwrap_or_default() {
            errors.keep(flags.set(&setting));
        }
        flags
    }

    fn set(&mut self, setting: &Setting) -> Result<()> {
        match setting.name.to_string().as_str() {
            "sensitive" => self.sensitive = setting.switch()?,
            "read_only" => self.read_only = setting.switch()?,
            "concurrent" => self.concurrent = setting.switch()?,
            "idempotent" => self.idempotent = setting.switch()?,
            "return_direct" => self.return_direct = setting.switch()?,
            "timeout" => self.timeout = Some(duration(setting)?),
            "tags" => self.tags = tags(setting)?,
            "name" => self.name = Some(name(setting)?),
            "description" => self.description = Some(setting.text()?),
            "crate" => self.krate = Some(path(setting)?),
            _ => return Err(setting.unknown("flag", KNOWN)),
        }
        Ok(())
    }

    /// Where the crate is.
    pub(crate) fn krate(&self) -> TokenStream {
        self.krate.as_ref().map_or_else(|| quote!(::cepa), |path| quote!(#path))
    }

    /// The `ToolFlags`.
    pub(crate) fn value(&self) -> TokenStream {
        let Self { sensitive, read_only, concurrent, idempotent, return_direct, tags, .. } = self;
        let krate = self.krate();
        let timeout = match self.timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)) {
            Some(ms) => quote!(::core::option::Option::Some(::core::time::Duration::from_millis(#ms))),
            None => quote!(::core::option::Option::None),
        };
        quote! {
            #krate::ToolFlags {
                sensitive: #sensitive,
                read_only: #read_only,
                concurrent: #concurrent,
                idempotent: #idempotent,
                return_direct: #return_direct,
                timeout: #timeout,
                tags: ::std::vec![#(::std::string::String::from(#tags)),*],
            }
        }
    }
}

/// Every provider takes these names.
pub(crate) fn check_name(name: &str) -> std::result::Result<(), String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.chars().all(fits) && (1..=64).contains(&name.len()) {
        return Ok(());
    }
    Err(format!("providers refuse the name `{name}`: use at most 64 letters (a-z, A-Z), digits, `_` and `-`"))
}

fn name(setting: &Setting) -> Result<LitStr> {
    let name = setting.text()?;
    check_name(&name.value()).map_err(|message| setting.error(message))?;
    Ok(name)
}

fn duration(setting: &Setting) -> Result<Duration> {
    let Some(Lit::Str(text)) = setting.value.as_ref().and_then(literal) else { return Err(setting.error(DURATION)) };
    let text = text.value();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let milliseconds = match unit.trim() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(setting.error(DURATION)),
    };
    match number.parse::<u64>().ok().and_then(|number| number.checked_mul(milliseconds)) {
        Some(0) => Err(setting.error("no body is done in no time: leave the timeout out, or give it some")),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
        None => Err(setting.error(DURATION)),
    }
}

fn tags(setting: &Setting) -> Result<Vec<LitStr>> {
    const WANTED: &str = r#"write a list of texts: tags = ["a", "b"]"#;
    let Some(Expr::Array(list)) = &setting.value else { return Err(setting.error(WANTED)) };
    list.elems
        .iter()
        .map(|tag| match literal(tag) {
            Some(Lit::Str(tag)) if !tag.value().trim().is_empty() => Ok(tag.clone()),
            _ => Err(Error::new_spanned(tag, WANTED)),
        })
        .collect()
}

fn path(setting: &Setting) -> Result<Path> {
    match &setting.value {
        Some(Expr::Path(path)) => Ok(path.path.clone()),
        Some(value) if let Some(Lit::Str(text)) = literal(value) => text.parse_with(Path::parse_mod_style),
        _ => Err(setting.error("write a path: crate = cepa_core")),
    }
}
