//! One operation, as it stands in the `impl`.

use syn::parse::{Parse, ParseStream};
use syn::{Attribute, Error, Expr, FnArg, Ident, ImplItemFn, Pat, ReturnType, Token, Type, Visibility};

/// What each handle can do besides.
const TAKEN: [&str; 4] = ["share", "find", "place", "placement"];

/// One operation, as it was read.
pub struct Declared {
    pub name: Ident,
    pub visibility: Visibility,
    pub docs: Vec<Attribute>,
    pub writes: bool,
    pub guard: Option<Expr>,
    pub arguments: Vec<(Ident, Type)>,
    /// What it answers with; `None` where that is nothing.
    pub answer: Option<Type>,
}

/// What stands between the parentheses of `#[operation]`.
struct Marks {
    writes: bool,
    guard: Option<Expr>,
}

impl Parse for Marks {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let kind: Ident = input.parse()?;
        if kind != "read" && kind != "write" {
            return Err(Error::new(kind.span(), "an operation is `read` or `write`"));
        }
        let mut guard = None;
        if input.parse::<Option<Token![,]>>()?.is_some() {
            let word: Ident = input.parse()?;
            if word != "guard" {
                return Err(Error::new(word.span(), "only `guard = CONDITION` can stand here"));
            }
            input.parse::<Token![=]>()?;
            guard = Some(input.parse()?);
        }
        Ok(Self { writes: kind == "write", guard })
    }
}

/// Takes the mark off a function and tells what it says; `None` where there is none.
pub fn take(function: &mut ImplItemFn) -> syn::Result<Option<Declared>> {
    let Some(at) = function.attrs.iter().position(|attribute| attribute.path().is_ident("operation")) else {
        return Ok(None);
    };
    let marks: Marks = function.attrs.remove(at).parse_args()?;
    if marks.guard.is_some() {
        // An argument may be there for the guard alone.
        function.attrs.push(syn::parse_quote!(#[allow(unused_variables)]));
    }
    let signature = &function.sig;
    let plain = signature.generics.params.is_empty() && signature.asyncness.is_none();
    if !plain {
        return Err(Error::new_spanned(signature, "an operation has no parameters of types, and is not async"));
    }
    if TAKEN.iter().any(|taken| signature.ident == taken) {
        let text = format!("a handle has {} of its own: no operation has this name", TAKEN.join(", "));
        return Err(Error::new_spanned(&signature.ident, text));
    }
    let mut inputs = signature.inputs.iter();
    let is_fitting = match inputs.next() {
        Some(FnArg::Receiver(own)) => own.reference.is_some() && own.mutability.is_some() == marks.writes,
        _ => false,
    };
    if !is_fitting {
        return Err(Error::new_spanned(signature, "an operation takes `&self` if it reads, `&mut self` if it writes"));
    }
    let arguments = inputs.map(argument).collect::<syn::Result<_>>()?;
    let answer = match &signature.output {
        ReturnType::Default => None,
        ReturnType::Type(_, of) => Some((**of).clone()),
    };
    let docs = function.attrs.iter().filter(|attribute| attribute.path().is_ident("doc")).cloned().collect();
    Ok(Some(Declared {
        name: signature.ident.clone(),
        visibility: function.vis.clone(),
        docs,
        writes: marks.writes,
        guard: marks.guard,
        arguments,
        answer,
    }))
}

fn argument(input: &FnArg) -> syn::Result<(Ident, Type)> {
    let wrong = || Error::new_spanned(input, "an argument of an operation is a name and a type, owned or behind `&`");
    let FnArg::Typed(typed) = input else { return Err(wrong()) };
    let Pat::Ident(name) = &*typed.pat else { return Err(wrong()) };
    if matches!(&*typed.ty, Type::Reference(reference) if reference.mutability.is_some()) {
        return Err(wrong());
    }
    Ok((name.ident.clone(), (*typed.ty).clone()))
}
