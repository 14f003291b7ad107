//! The catalogue of data sets, as flat data.

use estimand_tensor::{Array, BatchSpec, DType, Error, FeatureSpec, Result};

use super::Info;
use crate::cifar10;

/// A data set.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    about: &'static str,
    origin: &'static str,
    /// The columns, including the label.
    pub(crate) columns: &'static [Column],
    pub(crate) label: &'static str,
    pub(crate) classes: &'static [&'static str],
    pub(crate) format: Format,
    pub(crate) splits: &'static [Split],
}

/// A feature or label: its name, its element type, and the sizes of one row's axes.
#[derive(Debug)]
pub(crate) struct Column(pub(crate) &'static str, pub(crate) DType, pub(crate) &'static [usize]);

/// The file format of a split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// One archive, embedded in the library.
    Npz,
    /// One file of images and one of labels.
    Idx,
    Cifar10,
    /// One table, a CSV file with a header or a file of another format. It may have more columns.
    /// Missing numbers are NaN, missing text is empty.
    Table,
}

/// A split of a data set.
#[derive(Debug)]
pub(crate) struct Split {
    pub(crate) name: &'static str,
    n_rows: u64,
    pub(crate) files: &'static [SetFile],
}

/// A file of a data set.
#[derive(Debug)]
pub(crate) enum SetFile {
    Embedded(&'static [u8]),
    /// Its published name, and the SHA-256 of the file where it is known.
    Published(&'static str, Option<&'static str>),
}

impl Split {
    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.files, [SetFile::Embedded(_), ..])
    }
}

/// The names of all data sets.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    ALL.iter().map(|entry| entry.name)
}

impl Entry {
    pub(crate) fn named(name: &str) -> Result<&'static Entry> {
        ALL.iter().find(|entry| entry.name == name).ok_or_else(|| Error::unknown("data set", name, names()))
    }

    pub(super) fn info(&self) -> Info {
        let features = self.columns.iter().filter(|column| column.0 != self.label);
        Info {
            name: self.name,
            about: self.about,
            origin: self.origin,
            features: features
                .map(|Column(name, dtype, dims)| (name.to_string(), FeatureSpec::dense(*dtype, *dims)))
                .collect(),
            label: self.label,
            classes: self.classes,
            splits: self.splits.iter().map(|split| (split.name, split.n_rows)).collect(),
        }
    }

    /// The columns as they are read from a table: with the value that stands for a missing one.
    pub(crate) fn table_spec(&self) -> Result<BatchSpec> {
        let spec = |Column(name, dtype, _): &Column| {
            let spec = match dtype {
                DType::F32 => FeatureSpec::dense_or(Array::scalar(f32::NAN)),
                DType::Str => FeatureSpec::dense_or(Array::zeros(DType::Str, [])?),
                dtype => FeatureSpec::dense(*dtype, []),
            };
            Ok((name.to_string(), spec))
        };
        self.columns.iter().map(spec).collect()
    }
}

const CIFAR10_TRAIN: &[SetFile] = &[
    SetFile::Published("data_batch_1.bin", None),
    SetFile::Published("data_batch_2.bin", None),
    SetFile::Published("data_batch_3.bin", None),
    SetFile::Published("data_batch_4.bin", None),
    SetFile::Published("data_batch_5.bin", None),
];

const DIGITS: &[&str] = &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"];

const fn f32s(name: &'static str) -> Column {
    Column(name, DType::F32, &[])
}

const fn i32s(name: &'static str) -> Column {
    Column(name, DType::I32, &[])
}

const fn strings(name: &'static str) -> Column {
    Column(name, DType::Str, &[])
}

const fn class(name: &'static str) -> Column {
    Column(name, DType::I64, &[])
}

static ALL: &[Entry] = &[
    Entry {
        name: "iris",
        about: "150 flowers of three species by four measures in cm",
        origin: "R. A. Fisher, 1936; part of the library, see datasets/embedded/README.md",
        columns: &[f32s("SepalLength"), f32s("SepalWidth"), f32s("PetalLength"), f32s("PetalWidth"), class("Species")],
        label: "Species",
        classes: &["setosa", "versicolor", "virginica"],
        format: Format::Npz,
        splits: &[Split {
            name: "train",
            n_rows: 150,
            files: &[SetFile::Embedded(include_bytes!("embedded/iris.npz"))],
        }],
    },
    Entry {
        name: "digits",
        about: "handwritten digits of 8 x 8 pixels from 0 to 16",
        origin: "UCI, CC BY 4.0; part of the library, see datasets/embedded/README.md",
        columns: &[Column("image", DType::U8, &[8, 8, 1]), class("label")],
        label: "label",
        classes: DIGITS,
        format: Format::Npz,
        splits: &[Split {
            name: "train",
            n_rows: 1_797,
            files: &[SetFile::Embedded(include_bytes!("embedded/digits.npz"))],
        }],
    },
    Entry {
        name: "adult",
        about: "persons of the census of 1994, and whether their income is over 50,000 dollars; missing text is `?`",
        origin: "UCI, CC BY 4.0; part of the library, see datasets/embedded/README.md",
        columns: &[
            i32s("age"),
            strings("workclass"),
            i32s("fnlwgt"),
            strings("education"),
            i32s("educational-num"),
            strings("marital-status"),
            strings("occupation"),
            strings("relationship"),
            strings("race"),
            strings("gender"),
            i32s("capital-gain"),
            i32s("capital-loss"),
            i32s("hours-per-week"),
            strings("native-country"),
            class("income"),
        ],
        label: "income",
        classes: &["<=50K", ">50K"],
        format: Format::Npz,
        splits: &[
            Split {
                name: "train",
                n_rows: 32_561,
                files: &[SetFile::Embedded(include_bytes!("embedded/adult_train.npz"))],
            },
            Split {
                name: "test",
                n_rows: 16_281,
                files: &[SetFile::Embedded(include_bytes!("embedded/adult_test.npz"))],
            },
        ],
    },
    Entry {
        name: "mnist",
        about: "handwritten digits of 28 x 28 pixels",
        origin: "Y. LeCun, C. Cortes, C. Burges; four IDX files",
        columns: &[Column("image", DType::U8, &[28, 28, 1]), class("label")],
        label: "label",
        classes: DIGITS,
        format: Format::Idx,
        splits: &[
            Split {
                name: "train",
                n_rows: 60_000,
                files: &[
                    SetFile::Published(
                        "train-images-idx3-ubyte.gz",
                        Some("0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971"),
                    ),
                    SetFile::Published(
                        "train-labels-idx1-ubyte.gz",
                        Some("1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203"),
                    ),
                ],
            },
            Split {
                name: "test",
                n_rows: 10_000,
                files: &[
                    SetFile::Published(
                        "t10k-images-idx3-ubyte.gz",
                        Some("1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be"),
                    ),
                    SetFile::Published(
                        "t10k-labels-idx1-ubyte.gz",
                        Some("b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b"),
                    ),
                ],
            },
        ],
    },
    Entry {
        name: "fashion_mnist",
        about: "articles of clothing, 28 x 28 pixels",
        origin: "Zalando, MIT; four IDX files of the same names as MNIST's",
        columns: &[Column("image", DType::U8, &[28, 28, 1]), class("label")],
        label: "label",
        classes: &[
            "T-shirt/top",
            "Trouser",
            "Pullover",
            "Dress",
            "Coat",
            "Sandal",
            "Shirt",
            "Sneaker",
            "Bag",
            "Ankle boot",
        ],
        format: Format::Idx,
        splits: &[
            Split {
                name: "train",
                n_rows: 60_000,
                files: &[
                    SetFile::Published("train-images-idx3-ubyte.gz", None),
                    SetFile::Published("train-labels-idx1-ubyte.gz", None),
                ],
            },
            Split {
                name: "test",
                n_rows: 10_000,
                files: &[
                    SetFile::Published("t10k-images-idx3-ubyte.gz", None),
                    SetFile::Published("t10k-labels-idx1-ubyte.gz", None),
                ],
            },
        ],
    },
    Entry {
        name: "cifar10",
        about: "photographs of ten classes, 32 x 32 pixels in colour",
        origin: "A. Krizhevsky, 2009; the files of the binary version, unpacked",
        columns: &[Column("image", DType::U8, &[32, 32, 3]), class("label")],
        label: "label",
        classes: &cifar10::CLASSES,
        format: Format::Cifar10,
        splits: &[
            Split { name: "train", n_rows: 50_000, files: CIFAR10_TRAIN },
            Split { name: "test", n_rows: 10_000, files: &[SetFile::Published("test_batch.bin", None)] },
        ],
    },
    Entry {
        name: "california_housing",
        about: "districts of California in 1990; the median house value in 100,000 dollars",
        origin: "R. K. Pace and R. Barry, 1997 (StatLib); california_housing.csv with scikit-learn's column names",
        columns: &[
            f32s("MedInc"),
            f32s("HouseAge"),
            f32s("AveRooms"),
            f32s("AveBedrms"),
            f32s("Population"),
            f32s("AveOccup"),
            f32s("Latitude"),
            f32s("Longitude"),
            f32s("MedHouseVal"),
        ],
        label: "MedHouseVal",
        classes: &[],
        format: Format::Table,
        splits: &[Split {
            name: "train",
            n_rows: 20_640,
            files: &[SetFile::Published("california_housing.csv", None)],
        }],
    },
    Entry {
        name: "boston_housing",
        about: "suburbs of Boston in 1970; the median house value in 1,000 dollars",
        origin: "D. Harrison and D. Rubinfeld, 1978 (StatLib); boston_housing.csv",
        columns: &[
            f32s("crim"),
            f32s("zn"),
            f32s("indus"),
            f32s("chas"),
            f32s("nox"),
            f32s("rm"),
            f32s("age"),
            f32s("dis"),
            f32s("rad"),
            f32s("tax"),
            f32s("ptratio"),
            f32s("b"),
            f32s("lstat"),
            f32s("medv"),
        ],
        label: "medv",
        classes: &[],
        format: Format::Table,
        splits: &[Split { name: "train", n_rows: 506, files: &[SetFile::Published("boston_housing.csv", None)] }],
    },
    Entry {
        name: "titanic",
        about: "passengers of the Titanic, and who survived",
        origin: "titanic.csv with the columns that seaborn uses; `alive`, the label in words, is left out",
        columns: &[
            class("survived"),
            i32s("pclass"),
            strings("sex"),
            f32s("age"),
            i32s("sibsp"),
            i32s("parch"),
            f32s("fare"),
            strings("embarked"),
            strings("class"),
            strings("who"),
            strings("adult_male"),
            strings("deck"),
            strings("embark_town"),
            strings("alone"),
        ],
        label: "survived",
        classes: &["died", "survived"],
        format: Format::Table,
        splits: &[Split { name: "train", n_rows: 891, files: &[SetFile::Published("titanic.csv", None)] }],
    },
];
