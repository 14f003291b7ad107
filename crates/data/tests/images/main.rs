//! Images against TensorFlow's, and their folders.

#[cfg(feature = "image")]
mod decode;
mod fixture;
#[cfg(feature = "image")]
mod folder;
mod functions;
