//! One parameter of a tool's function: what the model is told of it and how it reaches the body.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::{
    Attribute, Error, Expr, GenericArgument, Ident, Lit, LitStr, Pat, PatType, PathArguments, Result, Type,
    TypeReference, ext::IdentExt, spanned::Spanned,
};

use crate::{
    docs,
    settings::{self, Setting, literal},
};

const KNOWN: &[&str] = &["description", "default", "name"];

/// Where the values of parameters come from.
pub(crate) enum Source {
    /// A member of the arguments.
    Member(Box<Member>),
    /// All arguments, as a type of the user's.
    Arguments(Box<Type>),
    /// The call's context.
    Context,
}

/// A member of the arguments' schema.
pub(crate) struct Member {
    field: Ident,
    ty: TokenStream,
    pub(crate) name: LitStr,
    description: Option<LitStr>,
    default: Option<Expr>,
}

/// A parameter and how the body wants it.
pub(crate) struct Parameter {
    pub(crate) source: Source,
    /// The type behind the `&`, where the body wants a reference.
    borrowed: Option<Box<Type>>,
}

impl Parameter {
    /// Reads a parameter, and takes our attributes off it.
    pub(crate) fn read(parameter: &mut PatType) -> Result<Self> {
        let mut settings = Vec::new();
        let mut whole = false;
        for attribute in &parameter.attrs {
            if attribute.path().is_ident("param") {
                settings.extend(attribute.parse_args_with(settings::parse)?);
            } else if attribute.path().is_ident("args") {
                attribute.meta.require_path_only()?;
                whole = true;
            } else if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
                let message = "a parameter of a tool is there or not: put the `cfg` on the function";
                return Err(Error::new_spanned(attribute, message));
            }
        }
        let description = docs::text(&parameter.attrs).map(|text| LitStr::new(&text, Span::call_site()));
        parameter.attrs.retain(|attribute| !is_ours(attribute));
        let borrowed = match &*parameter.ty {
            Type::Reference(reference) => Some(behind(reference)?),
            _ => None,
        };
        let ty = borrowed.as_ref().unwrap_or(&parameter.ty);
        check_type(ty)?;
        if is_context(ty) {
            return match settings.first() {
                Some(setting) => Err(Error::new_spanned(&setting.name, "the model is not told of the context")),
                None => Ok(Self { source: Source::Context, borrowed }),
            };
        }
        if whole {
            return match settings.first() {
                Some(setting) => Err(Error::new_spanned(&setting.name, "describe the members in the struct itself")),
                None => Ok(Self { source: Source::Arguments(ty.clone()), borrowed }),
            };
        }
        let member = Member::read(parameter, &borrowed, description, &settings)?;
        Ok(Self { source: Source::Member(Box::new(member)), borrowed })
    }

    /// The expression that hands the value to the body.
    pub(crate) fn argument(&self, arguments: &Ident, context: &Ident) -> TokenStream {
        let value = match &self.source {
            Source::Member(member) => {
                let field = &member.field;
                quote!(#arguments.#field)
            }
            Source::Arguments(_) => quote!(#arguments),
            Source::Context => quote!(#context),
        };
        match (&self.source, &self.borrowed) {
            (Source::Member(_), Some(ty)) => {
                quote_spanned!(ty.span()=> ::core::borrow::Borrow::<#ty>::borrow(&#value))
            }
            (Source::Arguments(_) | Source::Context, Some(_)) => quote!(&#value),
            (_, None) => value,
        }
    }
}

impl Member {
    fn read(
        parameter: &PatType,
        borrowed: &Option<Box<Type>>,
        description: Option<LitStr>,
        settings: &[Setting],
    ) -> Result<Self> {
        let Pat::Ident(pattern) = &*parameter.pat else {
            return Err(Error::new_spanned(&parameter.pat, "give this parameter a name: the model calls it by that"));
        };
        if pattern.by_ref.is_some() || pattern.subpat.is_some() {
            return Err(Error::new_spanned(pattern, "write only a name here: the model calls the parameter by it"));
        }
        let field = pattern.ident.clone();
        let name = LitStr::new(&field.unraw().to_string(), field.span());
        let ty = match borrowed {
            Some(ty) => quote_spanned!(ty.span()=> <#ty as ::std::borrow::ToOwned>::Owned),
            None => parameter.ty.to_token_stream(),
        };
        let mut member = Self { field, ty, name, description, default: None };
        for setting in settings {
            match setting.name.to_string().as_str() {
                "description" => member.description = Some(setting.text()?),
                "name" => member.name = setting.text()?,
                "default" => member.default = Some(member.read_default(setting, &parameter.ty)?),
                _ => return Err(setting.unknown("setting of a parameter", KNOWN)),
            }
        }
        Ok(member)
    }

    fn read_default(&self, setting: &Setting, ty: &Type) -> Result<Expr> {
        if is_option(ty) {
            let message = "what has a default is always there: write the type without `Option`";
            return Err(Error::new_spanned(ty, message));
        }
        setting.value.clone().ok_or_else(|| setting.error("write a value: default = 5"))
    }

    /// The name of the function that makes the default.
    fn default_fn(&self) -> Ident {
        format_ident!("default_of_{}", self.field.unraw(), span = Span::mixed_site())
    }

    /// The member as a field of the struct that the arguments are read into.
    pub(crate) fn field(&self, of: &Ident) -> TokenStream {
        let Self { field, ty, name, description, default } = self;
        let description = description.as_ref().map(|text| quote!(#[schemars(description = #text)]));
        let default = default.as_ref().map(|_| {
            let path = format!("{of}::{}", self.default_fn());
            quote!(#[serde(default = #path)])
        });
        quote! {
            #description
            #default
            #[serde(rename = #name)]
            #field: #ty
        }
    }

    /// The function that makes the default, if there is one.
    pub(crate) fn default_body(&self) -> Option<TokenStream> {
        let Self { ty, default, .. } = self;
        let default = default.as_ref()?;
        let name = self.default_fn();
        let value = match literal(default) {
            // So that a `String`, a path and the like can be written as a text.
            Some(Lit::Str(text)) => quote_spanned!(text.span()=> ::core::convert::Into::into(#text)),
            Some(_) | None => default.to_token_stream(),
        };
        Some(quote! { fn #name() -> #ty { #value } })
    }
}

fn is_ours(attribute: &Attribute) -> bool {
    docs::is_doc(attribute) || attribute.path().is_ident("param") || attribute.path().is_ident("args")
}

fn behind(reference: &TypeReference) -> Result<Box<Type>> {
    if let Some(mutability) = &reference.mutability {
        return Err(Error::new_spanned(mutability, "a tool only reads its arguments: write `&` without `mut`"));
    }
    if let Some(lifetime) = &reference.lifetime {
        return Err(Error::new_spanned(lifetime, "arguments live as long as their call: leave the lifetime out"));
    }
    Ok(reference.elem.clone())
}

fn check_type(ty: &Type) -> Result<()> {
    if let Type::ImplTrait(_) = ty {
        return Err(Error::new_spanned(ty, "the model writes values of one type: write that type"));
    }
    match ampersand(ty.to_token_stream()) {
        Some(span) => {
            Err(Error::new(span, "arguments are owned inside other types: write `String` instead of `&str` here"))
        }
        None => Ok(()),
    }
}

fn ampersand(tokens: TokenStream) -> Option<Span> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Punct(punct) if punct.as_char() == '&' => Some(punct.span()),
        TokenTree::Group(group) => ampersand(group.stream()),
        _ => None,
    })
}

fn is_context(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "ToolContext"))
}

fn is_option(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|last| {
        last.ident == "Option"
            && matches!(&last.arguments, PathArguments::AngleBracketed(list)
                if list.args.len() == 1 && matches!(list.args.first(), Some(GenericArgument::Type(_))))
    })
}
