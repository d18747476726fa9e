//! Wire formats: the JSON that DSC v3 prints, made from what the engine works with, and only here.

pub mod results;
