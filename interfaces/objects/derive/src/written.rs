//! What is made of an `impl` with operations.

use crate::Declaration;
use crate::operation::Declared;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Ident, Type};

/// The `impl` itself, the table of its operations, and its handle.
pub fn object(declaration: &Declaration) -> TokenStream {
    let item = &declaration.item;
    let (parameters, _, bounds) = item.generics.split_for_impl();
    let of = &item.self_ty;
    let guards = declaration.operations.iter().filter_map(guard);
    let entries = declaration.operations.iter().map(entry);
    let handle = handle(declaration);
    quote! {
        #item

        impl #parameters #of #bounds {
            #(#guards)*
        }

        impl #parameters ::weft_objects::ObjectType for #of #bounds {
            const OPERATIONS: &'static [::weft_objects::made::ObjectOperation<Self>] = &[#(#entries),*];
        }

        #handle
    }
}

fn guard_name(operation: &Declared) -> Ident {
    format_ident!("guard_of_{}", operation.name)
}

/// The condition as a function of the state and, by reference, the arguments.
fn guard(operation: &Declared) -> Option<TokenStream> {
    let condition = operation.guard.as_ref()?;
    let name = guard_name(operation);
    let parameters = operation.arguments.iter().map(|(name, of)| match of {
        Type::Reference(_) => quote!(#name: #of),
        _ => quote!(#name: &#of),
    });
    Some(quote! {
        #[doc(hidden)]
        #[allow(unused_variables, clippy::trivially_copy_pass_by_ref, clippy::ptr_arg)]
        fn #name(&self, #(#parameters),*) -> bool {
            #condition
        }
    })
}

/// A line of the table: the operation on encoded arguments.
fn entry(operation: &Declared) -> TokenStream {
    let Declared { name, writes, arguments, .. } = operation;
    let text = name.to_string();
    let names: Vec<_> = arguments.iter().map(|(name, _)| name).collect();
    let owned = arguments.iter().map(|(_, of)| match of {
        Type::Reference(reference) => {
            let of = &reference.elem;
            quote!(<#of as ::std::borrow::ToOwned>::Owned)
        }
        of => quote!(#of),
    });
    let given = arguments.iter().map(|(name, of)| match of {
        Type::Reference(_) => quote!(&#name),
        _ => quote!(#name),
    });
    let waits = operation.guard.as_ref().map(|_| {
        let guard = guard_name(operation);
        quote! {
            if !state.#guard(#(&#names),*) {
                return Ok(None);
            }
        }
    });
    quote! {
        ::weft_objects::made::ObjectOperation {
            name: #text,
            writes: #writes,
            run: |state, arguments, is_answered| {
                let (#(#names,)*): (#(#owned,)*) = ::weft_objects::made::decode(arguments)?;
                #waits
                let answer = state.#name(#(#given),*);
                let bytes = if is_answered { ::weft_objects::made::encode(&answer)? } else { ::std::vec::Vec::new() };
                Ok(Some(bytes))
            },
        }
    }
}

fn handle(declaration: &Declaration) -> TokenStream {
    let Declaration { item, handle, operations } = declaration;
    let (parameters, arguments, bounds) = item.generics.split_for_impl();
    let of = &item.self_ty;
    let visibility = &operations[0].visibility;
    let methods = operations.iter().enumerate().map(|(number, operation)| method(number as u16, operation));
    let text = format!("A handle of a shared `{}`: its operations run where the object is.", quote!(#of));
    quote! {
        #[doc = #text]
        #visibility struct #handle #parameters (::weft_objects::ObjectHandle<#of>) #bounds;

        impl #parameters ::std::clone::Clone for #handle #arguments #bounds {
            fn clone(&self) -> Self {
                Self(self.0.clone())
            }
        }

        impl #parameters ::std::convert::AsRef<::weft_objects::ObjectHandle<#of>> for #handle #arguments #bounds {
            fn as_ref(&self) -> &::weft_objects::ObjectHandle<#of> {
                &self.0
            }
        }

        #[allow(dead_code, private_interfaces)]
        impl #parameters #handle #arguments #bounds {
            /// Creates the object of this name, or opens it if it is there already and of the same type.
            #visibility fn share(
                space: &::weft_objects::Space,
                name: &str,
                initial: #of,
            ) -> ::std::result::Result<Self, ::weft_objects::ObjectFault> {
                space.share(name, initial).map(Self)
            }

            /// Opens the object of this name.
            #visibility fn find(
                space: &::weft_objects::Space,
                name: &str,
            ) -> ::std::result::Result<Self, ::weft_objects::ObjectFault> {
                space.find(name).map(Self)
            }

            /// Has the object replicated or on one process from now on, or where counting says. All processes agree on
            /// the moment.
            #visibility fn place(
                &self,
                strategy: ::weft_objects::Strategy,
            ) -> ::std::result::Result<(), ::weft_objects::ObjectFault> {
                self.0.place(strategy)
            }

            /// Where the object is, as far as this process has heard. Inside an operation that is a panic.
            #visibility fn placement(&self) -> ::weft_objects::ObjectPlacement {
                self.0.placement()
            }

            #(#methods)*
        }
    }
}

/// The method of the handle: a read is tried in this process first.
fn method(number: u16, operation: &Declared) -> TokenStream {
    let Declared { name, visibility, docs, writes, arguments, answer, .. } = operation;
    let parameters = arguments.iter().map(|(name, of)| quote!(#name: #of));
    let names: Vec<_> = arguments.iter().map(|(name, _)| name).collect();
    let answer = answer.as_ref().map_or_else(|| quote!(()), |of| quote!(#of));
    let body = if *writes {
        quote!(self.0.call(#number, &(#(#names,)*)))
    } else {
        let is_ready = match &operation.guard {
            None => quote!(|_, _| true),
            Some(_) => {
                let guard = guard_name(operation);
                quote!(|state, (#(#names,)*)| state.#guard(#(#names),*))
            }
        };
        quote!(self.0.read(#number, (#(#names,)*), #is_ready, |state, (#(#names,)*)| state.#name(#(#names),*)))
    };
    quote! {
        #(#docs)*
        #[allow(unused_variables)]
        #visibility fn #name(&self, #(#parameters),*) -> ::std::result::Result<#answer, ::weft_objects::ObjectFault> {
            #body
        }
    }
}
