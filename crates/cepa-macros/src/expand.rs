//! The function that `#[tool]` makes of a function.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{Attribute, FnArg, ItemFn, LitStr, Result, ReturnType, Safety, Signature, ext::IdentExt, spanned::Spanned};

use crate::{
    docs,
    flags::{Flags, check_name},
    parameter::{Member, Parameter, Source},
    settings::Errors,
};

/// The tokens of `fn name() -> Tool` in place of the function.
pub(crate) fn tool(flags: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let mut errors = Errors::default();
    let flags = Flags::read(flags, &mut errors);
    let mut function: ItemFn = match syn::parse2(function) {
        Ok(function) => function,
        Err(error) => {
            errors.push(syn::Error::new(error.span(), format!("`#[tool]` stands on a function with a body: {error}")));
            return errors.finish(TokenStream::new());
        }
    };
    check_signature(&function.sig, &mut errors);
    let name = name(&flags, &function.sig.ident, &mut errors);
    let description = description(&flags, &function, &mut errors);
    let parameters = parameters(&mut function.sig, &mut errors);
    check_together(&function.sig, &parameters, &mut errors);
    let expanded = assemble(&flags, &name, &description, &parameters, function);
    errors.finish(expanded)
}

fn check_signature(signature: &Signature, errors: &mut Errors) {
    let Signature { constness, safety, abi, generics, variadic, .. } = signature;
    if let Some(constness) = constness {
        errors.at(constness, "a tool runs when it is called: leave `const` out");
    }
    if let Safety::Unsafe(unsafety) = safety {
        errors.at(unsafety, "a model cannot promise what `unsafe` asks for: write a safe function");
    }
    if let Some(abi) = abi {
        errors.at(abi, "a tool is a Rust function: leave `extern` out");
    }
    if !generics.params.is_empty() {
        errors.at(&generics.params, "the model writes values of known types: a tool has no generic parameters");
    }
    if let Some(variadic) = variadic {
        errors.at(variadic, "name every parameter");
    }
}

fn name(flags: &Flags, function: &Ident, errors: &mut Errors) -> LitStr {
    if let Some(name) = &flags.name {
        return name.clone();
    }
    let name = function.unraw().to_string();
    if let Err(message) = check_name(&name) {
        errors.at(function, format_args!("{message}; set one with #[tool(name = \"…\")]"));
    }
    LitStr::new(&name, function.span())
}

fn description(flags: &Flags, function: &ItemFn, errors: &mut Errors) -> LitStr {
    if let Some(description) = &flags.description {
        return description.clone();
    }
    let text = docs::text(&function.attrs).unwrap_or_else(|| {
        errors.at(
            &function.sig.ident,
            "the model chooses a tool by its description: write a doc comment (///) above the function",
        );
        String::new()
    });
    LitStr::new(&text, Span::call_site())
}

fn parameters(signature: &mut Signature, errors: &mut Errors) -> Vec<Parameter> {
    let mut parameters = Vec::new();
    for input in &mut signature.inputs {
        match input {
            FnArg::Receiver(receiver) => {
                errors.at(
                    receiver,
                    "a tool has no `self`: take what it needs from the context's extensions, or use `Tool::typed`",
                );
            }
            FnArg::Typed(typed) => parameters.extend(errors.keep(Parameter::read(typed))),
        }
    }
    parameters
}

/// What only shows when all parameters are seen together.
fn check_together(signature: &Signature, parameters: &[Parameter], errors: &mut Errors) {
    if parameters.len() != signature.inputs.len() {
        return;
    }
    let whole = parameters.iter().any(|parameter| matches!(parameter.source, Source::Arguments(_)));
    let (mut contexts, mut structs) = (0, 0);
    let mut names: Vec<String> = Vec::new();
    for (input, parameter) in signature.inputs.iter().zip(parameters) {
        match &parameter.source {
            Source::Context => {
                contexts += 1;
                if contexts > 1 {
                    errors.at(input, "one parameter for the context is enough");
                }
            }
            Source::Arguments(_) => {
                structs += 1;
                if structs > 1 {
                    errors.at(input, "one struct holds all arguments: put these members into the first");
                }
            }
            Source::Member(_) if whole => {
                errors.at(input, "the struct under #[args] holds all arguments: put this one into it");
            }
            Source::Member(member) => {
                let name = member.name.value();
                if names.contains(&name) {
                    errors.at(&member.name, format_args!("two parameters are named `{name}` for the model"));
                }
                names.push(name);
            }
        }
    }
}

fn assemble(
    flags: &Flags,
    name: &LitStr,
    description: &LitStr,
    parameters: &[Parameter],
    mut function: ItemFn,
) -> TokenStream {
    let krate = flags.krate();
    let values = flags.value();
    let struct_name = Ident::new("__ToolArguments", Span::mixed_site());
    let arguments = Ident::new("arguments", Span::mixed_site());
    let context = Ident::new("context", Span::mixed_site());

    let members: Vec<&Member> = parameters.iter().filter_map(member).collect();
    let (arguments_type, declaration) = match parameters.iter().find_map(whole) {
        Some(ty) => (ty.to_token_stream(), TokenStream::new()),
        None => (struct_name.to_token_stream(), declaration(&krate, &struct_name, &members)),
    };

    let (outer, inner): (Vec<Attribute>, Vec<Attribute>) =
        std::mem::take(&mut function.attrs).into_iter().partition(belongs_outside);
    function.attrs = inner;
    let vis = std::mem::replace(&mut function.vis, syn::Visibility::Inherited);
    let ident = function.sig.ident.clone();
    let passed = parameters.iter().map(|parameter| parameter.argument(&arguments, &context));
    let awaited = function.sig.asyncness.map(|_| quote!(.await));
    let returned = match &function.sig.output {
        ReturnType::Type(_, ty) => ty.span(),
        ReturnType::Default => ident.span(),
    };
    // All of it points at the type, so that an error about what is returned does.
    let returns = at(returned, quote!(#krate::__private::Returned));
    let output = quote_spanned!(returned=> #returns(#ident(#(#passed),*)#awaited).output());
    quote! {
        #(#outer)*
        #vis fn #ident() -> #krate::Tool {
            #[allow(unused_imports)]
            use #krate::__private::Plain as _;
            #declaration
            #function
            #krate::__private::tool::<#arguments_type, _, _>(
                #name,
                #description,
                #values,
                |#arguments: #arguments_type, #context: #krate::ToolContext| async move {
                    let _ = (&#arguments, &#context);
                    #output
                },
            )
        }
    }
}

fn at(span: Span, tokens: TokenStream) -> TokenStream {
    let moved = tokens.into_iter().map(|mut token| {
        token.set_span(span);
        token
    });
    moved.collect()
}

fn member(parameter: &Parameter) -> Option<&Member> {
    match &parameter.source {
        Source::Member(member) => Some(member),
        Source::Arguments(_) | Source::Context => None,
    }
}

fn whole(parameter: &Parameter) -> Option<&syn::Type> {
    match &parameter.source {
        Source::Arguments(ty) => Some(ty),
        Source::Member(_) | Source::Context => None,
    }
}

/// The struct that the arguments are read into.
fn declaration(krate: &TokenStream, name: &Ident, members: &[&Member]) -> TokenStream {
    let serde = quote!(#krate::__private::serde);
    let schemars = quote!(#krate::__private::schemars);
    let (serde_text, schemars_text) = (serde.to_string(), schemars.to_string());
    let fields = members.iter().map(|member| member.field(name));
    let defaults = members.iter().filter_map(|member| member.default_body());
    quote! {
        #[derive(#serde::Deserialize, #schemars::JsonSchema)]
        #[serde(crate = #serde_text, deny_unknown_fields)]
        #[schemars(crate = #schemars_text)]
        struct #name { #(#fields),* }
        impl #name { #(#defaults)* }
    }
}

/// Documentation and conditions belong to what the user sees; everything else was written for the body.
fn belongs_outside(attribute: &Attribute) -> bool {
    docs::is_doc(attribute) || ["cfg", "deprecated"].iter().any(|name| attribute.path().is_ident(name))
}

#[cfg(test)]
#[path = "expand_tests.rs"]
mod tests;
