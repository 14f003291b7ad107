//! Preprocessing layers: raw strings, integers, numbers and images become the inputs of a network.
//!
//! They are layers as all others, so a model that contains them takes raw features, also after an
//! export. What Keras' `adapt` learns is a setting of the layer here (`estimand::Adapt` sets it).
//! `output_mode` turns ids into vectors, `lookup` holds what both lookups share, `transform` moves
//! the pixels of images.

mod category_encoding;
mod discretization;
mod hashed_crossing;
mod hashing;
mod image;
mod lookup;
mod lookups;
mod normalization;
mod output_mode;
mod rescaling;
mod term;
mod text_vectorization;
mod tokens;

pub use category_encoding::CategoryEncoding;
pub use discretization::Discretization;
pub use hashed_crossing::HashedCrossing;
pub use hashing::Hashing;
pub use image::{
    CenterCrop, Factor, FillMode, Flip, RandomBrightness, RandomContrast, RandomCrop, RandomFlip, RandomRotation,
    RandomTranslation, RandomZoom, Resizing,
};
pub use lookups::{IntegerLookup, StringLookup};
pub use normalization::Normalization;
pub use output_mode::OutputMode;
pub use rescaling::Rescaling;
pub use text_vectorization::TextVectorization;
pub use tokens::{Split, Standardize};
