//! `#[object]`: makes a type with operations one whose values can be shared.
//!
//! From an `impl` with operations come three things: the `impl` as it stands, the table of its operations
//! (`weft_objects::ObjectType`), and a handle with a method for each operation, which runs it where the object is.
//! The crate `weft_objects` has the description and the examples; this one only reads and writes code.
//!
//! - `operation`: one operation, as it is read. - `written`: what is made of them.
//!
//! Test: `cargo test -p weft-objects`, whose standard objects are all made by it.

mod operation;
mod written;

use operation::Declared;
use proc_macro::TokenStream;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Ident, ImplItem, ItemImpl, Token, Type};

/// Makes a type with operations one whose values can be shared. See `weft_objects`.
///
/// `#[object(handle = Name)]` names the handle; else it is `Shared` and the name of the type.
#[proc_macro_attribute]
pub fn object(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let named = syn::parse::<Naming>(arguments);
    let made = named.and_then(|Naming(handle)| Ok(written::object(&read(syn::parse(item)?, handle)?)));
    made.unwrap_or_else(|error| error.to_compile_error()).into()
}

/// What stands between the parentheses of `#[object]`.
struct Naming(Option<Ident>);

impl Parse for Naming {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        if input.is_empty() {
            return Ok(Self(None));
        }
        let word: Ident = input.parse()?;
        if word != "handle" {
            return Err(Error::new(word.span(), "only `handle = Name` can stand here"));
        }
        input.parse::<Token![=]>()?;
        Ok(Self(Some(input.parse()?)))
    }
}

/// An `impl` with operations, as it was read.
struct Declaration {
    item: ItemImpl,
    handle: Ident,
    operations: Vec<Declared>,
}

fn read(mut item: ItemImpl, handle: Option<Ident>) -> syn::Result<Declaration> {
    let Type::Path(path) = &*item.self_ty else {
        return Err(Error::new_spanned(&item.self_ty, "an object is a type with a name"));
    };
    if let Some((_, of, _)) = &item.trait_ {
        return Err(Error::new_spanned(of, "operations stand in an `impl` of the type itself"));
    }
    let name = &path.path.segments.last().expect("a path has a name").ident;
    let handle = handle.unwrap_or_else(|| quote::format_ident!("Shared{name}"));
    let mut operations = Vec::new();
    for member in &mut item.items {
        if let ImplItem::Fn(function) = member {
            operations.extend(operation::take(function)?);
        }
    }
    if operations.is_empty() {
        return Err(Error::new_spanned(&item.self_ty, "an object has at least one #[operation(..)]"));
    }
    Ok(Declaration { item, handle, operations })
}
