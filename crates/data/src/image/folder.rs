//! A folder of images with one sub-folder per class. Threads decode the files when their rows are
//! needed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use estimand_tensor::parallel::Pool;
use estimand_tensor::{Array, Batch, BatchSpec, DType, Error, FeatureSpec, Limits, Result};

use super::{Method, decode_within, resize};
use crate::stage::{Indexed, InputContext, Stage, Stream, StreamItem};
use crate::{Dataset, Position};

/// The largest number of images that are decoded together.
const PIECE: usize = 64;

/// A folder of images in sub-folders, with options; [`dataset`](ImageFolder::dataset) builds the
/// [`Dataset`].
///
/// The classes are the names of the sub-folders, sorted. The rows are the PNG and JPEG files
/// (`.png`, `.jpg`, `.jpeg`) below them, at any depth, class by class and sorted by path. Each row
/// has the feature `image` `[height, width, channels]` and the label `label`, i64.
///
/// ```
/// use estimand_data::image::{ImageFolder, Method};
///
/// let flowers = ImageFolder::new("flowers").size([180, 180], Method::Bilinear);
/// let data = flowers.dataset().shuffle(1, 7).batch(32).drop_remainder();
/// assert!(data.explain().contains("image folder: flowers, resized to 180 x 180"));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ImageFolder {
    path: PathBuf,
    size: Option<([usize; 2], Method)>,
    channels: usize,
    limits: Limits,
}

impl Dataset {
    /// Creates a dataset from a folder of images, in RGB and all of one size. [`ImageFolder`] has
    /// options.
    pub fn from_image_folder(path: impl Into<PathBuf>) -> Dataset {
        ImageFolder::new(path).dataset()
    }
}

impl ImageFolder {
    /// Describes the images below a path.
    pub fn new(path: impl Into<PathBuf>) -> ImageFolder {
        ImageFolder { path: path.into(), size: None, channels: 3, limits: Limits::default() }
    }

    /// Resizes every image to a height and width. By default, images keep their size, and one that
    /// differs in size from the first is an error.
    pub fn size(mut self, size: [usize; 2], method: Method) -> ImageFolder {
        self.size = Some((size, method));
        self
    }

    /// The number of channels: 1 for grey, 3 for RGB, 4 for RGBA. By default, 3.
    pub fn channels(mut self, channels: usize) -> ImageFolder {
        self.channels = channels;
        self
    }

    /// The limits on the pixels of an image and the bytes of a file ([`Limits::pixels`],
    /// [`Limits::record_bytes`]). By default, 268 million pixels and 2 GiB.
    pub fn limits(mut self, limits: Limits) -> ImageFolder {
        self.limits = limits;
        self
    }

    /// The names of the classes, indexed by label. Reads the folder.
    pub fn classes(&self) -> Result<Vec<String>> {
        Ok(class_folders(&self.path)?.into_iter().map(|(name, _)| name).collect())
    }

    /// Builds the dataset, with its labels separate from its features. Reads nothing yet.
    pub fn dataset(&self) -> Dataset {
        let source = Source { folder: self.clone(), listing: Mutex::new(None) };
        Dataset::new(source).label("label")
    }

    /// Reads a file and decodes it with the options of this folder.
    fn read(&self, path: &Path) -> Result<Array> {
        let bytes = self.limits.read_message(path)?;
        let decoded = decode_within(&bytes, Some(self.channels), &self.limits).and_then(|image| match self.size {
            Some((size, method)) => resize(&image, size, method),
            None => Ok(image),
        });
        decoded.map_err(|e| e.in_file(path))
    }

    fn list(&self) -> Result<Listing> {
        let mut files = Vec::new();
        for (class, (_, folder)) in (0..).zip(class_folders(&self.path)?) {
            add_images(&folder, class, &mut files)?;
        }
        let Some((first, _)) = files.first() else {
            return Err(Error::config(format!(
                "there is no PNG or JPEG file in the folders of {}",
                self.path.display()
            )));
        };
        let dtype = match self.size {
            Some((_, Method::Bilinear)) => DType::F32,
            _ => DType::U8,
        };
        let dims = match self.size {
            Some(([height, width], _)) => vec![height, width, self.channels],
            None => self.read(first)?.dims().to_vec(),
        };
        Ok(Listing { files, dtype, dims })
    }
}

/// The sub-folders and their names, sorted. Names that begin with a dot are skipped.
fn class_folders(path: &Path) -> Result<Vec<(String, PathBuf)>> {
    let folders: Vec<_> = entries(path)?
        .into_iter()
        .filter(|entry| entry.is_dir())
        .filter_map(|entry| Some((entry.file_name()?.to_string_lossy().into_owned(), entry)))
        .collect();
    if folders.is_empty() {
        return Err(Error::config(format!("{} has no sub-folders; expected one for each class", path.display()))
            .help("put the images of each class into a sub-folder with the name of the class"));
    }
    Ok(folders)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| Error::io(folder, "list", &e);
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            entries.push(entry.path());
        }
    }
    entries.sort();
    Ok(entries)
}

fn add_images(folder: &Path, class: i64, files: &mut Vec<(PathBuf, i64)>) -> Result<()> {
    for path in entries(folder)? {
        // A link to a folder could lead back to this one.
        if path.is_dir() && !path.is_symlink() {
            add_images(&path, class, files)?;
        } else if path
            .extension()
            .is_some_and(|e| ["png", "jpg", "jpeg"].iter().any(|known| e.eq_ignore_ascii_case(known)))
        {
            files.push((path, class));
        }
    }
    Ok(())
}

/// The contents of the folder, listed once.
struct Listing {
    files: Vec<(PathBuf, i64)>,
    dtype: DType,
    dims: Vec<usize>,
}

/// The stage of an image folder. The position is the index of the next file.
struct Source {
    folder: ImageFolder,
    listing: Mutex<Option<Arc<Listing>>>,
}

impl Source {
    fn listing(&self) -> Result<Arc<Listing>> {
        let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listing) = &*listing {
            return Ok(listing.clone());
        }
        let found = Arc::new(self.folder.list()?);
        *listing = Some(found.clone());
        Ok(found)
    }
}

impl Stage for Source {
    fn describe(&self) -> String {
        let size =
            self.folder.size.map_or(String::new(), |([height, width], _)| format!(", resized to {height} x {width}"));
        format!("image folder: {}{size}", self.folder.path.display())
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(self.listing()?.files.iter().map(|(path, _)| path.clone()).collect())
    }

    fn check(&self) -> Result<()> {
        let ImageFolder { channels, size, .. } = &self.folder;
        if ![1, 3, 4].contains(channels) {
            return Err(Error::config(format!("the image folder was given {channels} channels; expected 1, 3 or 4")));
        }
        match size {
            Some(([height, width], _)) if *height == 0 || *width == 0 => Err(Error::config(format!(
                "the image folder was given the size {height} x {width}; expected at least 1 x 1"
            ))),
            _ => Ok(()),
        }
    }

    fn spec(&self) -> Result<BatchSpec> {
        let listing = self.listing()?;
        let image = FeatureSpec::dense(listing.dtype, listing.dims.clone());
        Ok([("image".to_string(), image), ("label".to_string(), FeatureSpec::dense(DType::I64, []))]
            .into_iter()
            .collect())
    }

    fn classes(&self) -> Result<Option<Vec<String>>> {
        self.folder.classes().map(Some)
    }

    fn indexed(&self) -> Option<&dyn Indexed> {
        Some(self)
    }

    fn open(&self, _cx: &InputContext, from: &Position) -> Result<Box<dyn Stream>> {
        let ([next], []) = from.parts()?;
        let listing = self.listing()?;
        let n_files = listing.files.len();
        let next = usize::try_from(next).ok().filter(|&next| next <= n_files).ok_or_else(|| {
            Error::config(format!("the position is after image {next}, but the folder has {n_files} images"))
                .help("resume with the folder that the position was taken from")
        })?;
        Ok(Box::new(Images { folder: self.folder.clone(), listing, next }))
    }
}

impl Indexed for Source {
    fn n_rows(&self) -> Result<u64> {
        Ok(self.listing()?.files.len() as u64)
    }

    fn gather(&self, rows: &[u64]) -> Result<Batch> {
        let listing = self.listing()?;
        let chosen = rows.iter().map(|&row| {
            let file = usize::try_from(row).ok().and_then(|row| listing.files.get(row));
            file.ok_or_else(|| {
                Error::index(format!("there is no image {row}; the folder has {} images", listing.files.len()))
            })
        });
        listing.batch(&self.folder, &chosen.collect::<Result<Vec<_>>>()?)
    }
}

impl Listing {
    /// Decodes some files in threads, and returns the images with their classes.
    fn batch(&self, folder: &ImageFolder, files: &[&(PathBuf, i64)]) -> Result<Batch> {
        let decoded: Vec<OnceLock<Result<Array>>> = files.iter().map(|_| OnceLock::new()).collect();
        Pool::global().run(files.len(), &|i| {
            decoded[i].get_or_init(|| folder.read(&files[i].0));
        });
        let (mut bytes, mut floats) = (Vec::new(), Vec::new());
        for (image, (path, _)) in decoded.into_iter().zip(files) {
            let image = image.into_inner().unwrap_or_else(|| Err(Error::internal("an image was not decoded")))?;
            if image.dims() != self.dims {
                let sides = |dims: &[usize]| dims[..2].iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
                let message = format!(
                    "the image has {} pixels, but the first image has {}",
                    sides(image.dims()),
                    sides(&self.dims)
                );
                return Err(Error::data(message)
                    .in_file(path)
                    .help("resize all images to one size with ImageFolder::size([h, w], method)"));
            }
            match self.dtype {
                DType::U8 => bytes.extend_from_slice(image.as_slice::<u8>()?),
                _ => floats.extend_from_slice(image.as_slice::<f32>()?),
            }
        }
        let dims = [&[files.len()], self.dims.as_slice()].concat();
        let images = match self.dtype {
            DType::U8 => Array::from_vec(dims, bytes)?,
            _ => Array::from_vec(dims, floats)?,
        };
        let labels: Vec<i64> = files.iter().map(|(_, class)| *class).collect();
        Batch::new().with_feature("image", images)?.with_feature("label", Array::from(labels))
    }
}

struct Images {
    folder: ImageFolder,
    listing: Arc<Listing>,
    next: usize,
}

impl Stream for Images {
    fn pull(&mut self, want: usize) -> Result<Option<StreamItem>> {
        let end = self.next.saturating_add(want.min(PIECE)).min(self.listing.files.len());
        let files: Vec<_> = self.listing.files[self.next..end].iter().collect();
        if files.is_empty() {
            return Ok(None);
        }
        let batch = self.listing.batch(&self.folder, &files)?;
        self.next = end;
        Ok(Some(StreamItem { batch, after: Position::new([end as u64], []) }))
    }
}
