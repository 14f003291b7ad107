//! [`Group`] and [`Dataset`]: the objects of a file, as users see them.

use std::fmt;

use estimand_tensor::{Array, DType, Error, Result};

use super::elements;
use super::file::File;
use super::header::{Message, kind};
use super::message::attribute::Attribute;
use super::message::dataspace::Dataspace;
use super::message::datatype::Datatype;
use super::storage::Storage;
use super::tree::{Child, Kind};

/// An object of a file and its path.
#[derive(Clone)]
pub(super) struct Place<'f> {
    pub file: &'f File,
    pub object: usize,
    pub path: String,
}

/// A group: children by name, and attributes.
#[derive(Clone)]
pub struct Group<'f> {
    pub(super) place: Place<'f>,
}

/// A dataset: an array, and attributes.
#[derive(Clone)]
pub struct Dataset<'f> {
    place: Place<'f>,
    space: Dataspace,
}

/// A group or a dataset.
#[derive(Clone, Debug)]
pub enum Node<'f> {
    /// A group.
    Group(Group<'f>),
    /// A dataset.
    Dataset(Dataset<'f>),
}

/// The children of a group, ordered by name. A child that cannot be read is an error, and the
/// others follow.
pub struct Children<'g, 'f> {
    group: &'g Group<'f>,
    rest: std::slice::Iter<'f, Child>,
}

impl<'f> Place<'f> {
    fn messages(&self) -> &'f [Message] {
        &self.file.objects[self.object].messages
    }

    /// Adds the path of the object to an error.
    fn locate(&self, error: Error) -> Error {
        match self.file.source.path() {
            Some(file) => error.context(format!("in `{}` of {}", self.path, file.display())),
            None => error.context(format!("in `{}` of an HDF5 file", self.path)),
        }
    }

    fn message(&self, kind: u16, what: &str) -> Result<&'f Message> {
        let found = self.messages().iter().find(|message| message.kind == kind);
        let found = found.ok_or_else(|| Error::data(format!("the object has no {what}")))?;
        match found.is_shared() {
            false => Ok(found),
            true => Err(Error::unsupported(format!("its {what} is committed or shared, which is not read"))),
        }
    }

    /// The names of all attributes, in order, with the indices of their messages.
    fn attributes(&self) -> Result<&'f [(String, usize)]> {
        let attributes = &self.file.objects[self.object].attributes;
        attributes.as_deref().map_err(|error| self.locate(error.clone()))
    }

    fn attribute_names(&self) -> Result<Vec<String>> {
        Ok(self.attributes()?.iter().map(|(name, _)| name.clone()).collect())
    }

    fn find_attribute(&self, name: &str) -> Result<Option<Array>> {
        let attributes = self.attributes()?;
        let Ok(found) = attributes.binary_search_by(|(known, _)| known.as_str().cmp(name)) else { return Ok(None) };
        let message = &self.messages()[attributes[found].1];
        let read = || {
            let attribute = Attribute::parse(&message.data, self.file.source.widths)?;
            let (datatype, space) = (attribute.datatype()?, attribute.dataspace()?);
            let storage = Storage::of_bytes(attribute.data, space.len()?, datatype.size())?;
            elements::read(&datatype, &space.dims, &storage, self.file)
        };
        read().map(Some).map_err(|error| self.locate(error.context(format!("in the attribute `{name}`"))))
    }

    fn attribute(&self, name: &str) -> Result<Array> {
        match self.find_attribute(name)? {
            Some(array) => Ok(array),
            None => {
                let names = self.attribute_names()?;
                Err(self.locate(Error::unknown("attribute", name, names.iter().map(String::as_str))))
            }
        }
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The functions that all kinds of nodes have.
macro_rules! shared_functions {
    ($place:ident) => {
        /// The last part of the path; the root has the empty name.
        pub fn name(&self) -> &str {
            self.$place().name()
        }

        /// The path from the root, such as `/layers/dense`.
        pub fn path(&self) -> &str {
            &self.$place().path
        }

        /// The names of all attributes, in alphabetical order.
        pub fn attribute_names(&self) -> Result<Vec<String>> {
            self.$place().attribute_names()
        }

        /// The value of an attribute. A null value is an array of the sizes `[0]`.
        pub fn attribute(&self, name: &str) -> Result<Array> {
            self.$place().attribute(name)
        }

        /// The value of an attribute, or `None` if there is no attribute of this name.
        pub fn find_attribute(&self, name: &str) -> Result<Option<Array>> {
            self.$place().find_attribute(name)
        }
    };
}

impl<'f> Group<'f> {
    shared_functions!(place);

    fn place(&self) -> &Place<'f> {
        &self.place
    }

    fn list(&self) -> &'f [Child] {
        match &self.place.file.objects[self.place.object].kind {
            Kind::Group(children) => children,
            _ => &[],
        }
    }

    /// The names of all children, in alphabetical order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &'f str> + use<'f> {
        self.list().iter().map(|child| child.name.as_str())
    }

    /// The names of all children in the order in which they were created, if the file stores it.
    pub fn names_by_creation(&self) -> Option<Vec<&'f str>> {
        let orders = self.list().iter().map(|child| Some((child.order?, child.name.as_str())));
        let mut names: Vec<(u64, &str)> = orders.collect::<Option<_>>()?;
        names.sort();
        Some(names.into_iter().map(|(_, name)| name).collect())
    }

    /// All children, in the order of their names.
    pub fn children(&self) -> Children<'_, 'f> {
        Children { group: self, rest: self.list().iter() }
    }

    /// Whether a link has this path below the group. The object may be one that is not read.
    pub fn contains(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let has = |group: Group<'f>| group.list().binary_search_by(|child| child.name.as_str().cmp(name)).is_ok();
        self.group(parent).is_ok_and(has)
    }

    /// The object at a path below this group, such as `layers/dense/vars`.
    pub fn get(&self, path: &str) -> Result<Node<'f>> {
        let mut node = Node::Group(self.clone());
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let Node::Group(group) = &node else {
                let message = format!("the path `{path}` leads through a dataset");
                return Err(node.place().locate(Error::config(message)));
            };
            let list = group.list();
            let Ok(found) = list.binary_search_by(|child| child.name.as_str().cmp(name)) else {
                let error = Error::unknown("child", name, group.names());
                return Err(group.place.locate(error));
            };
            node = group.child(&list[found])?;
        }
        Ok(node)
    }

    /// The group at a path below this group.
    pub fn group(&self, path: &str) -> Result<Group<'f>> {
        match self.get(path)? {
            Node::Group(group) => Ok(group),
            Node::Dataset(dataset) => {
                Err(dataset.place.locate(Error::config(format!("`{path}` is a dataset, expected a group"))))
            }
        }
    }

    /// The dataset at a path below this group.
    pub fn dataset(&self, path: &str) -> Result<Dataset<'f>> {
        match self.get(path)? {
            Node::Dataset(dataset) => Ok(dataset),
            Node::Group(group) => {
                Err(group.place.locate(Error::config(format!("`{path}` is a group, expected a dataset"))))
            }
        }
    }

    fn child(&self, child: &Child) -> Result<Node<'f>> {
        let file = self.place.file;
        let separator = if self.place.path == "/" { "" } else { "/" };
        let path = format!("{}{separator}{}", self.place.path, child.name);
        let object = match child.object {
            Ok(object) => object,
            Err(what) => {
                let place = Place { file, object: 0, path };
                return Err(place.locate(Error::unsupported(format!("{what}, which is not read"))));
            }
        };
        let place = Place { file, object, path };
        match &file.objects[object].kind {
            Kind::Group(_) => Ok(Node::Group(Group { place })),
            Kind::Dataset => Dataset::new(place).map(Node::Dataset),
            Kind::Unread(error) => Err(place.locate(error.clone())),
        }
    }
}

impl<'f> Dataset<'f> {
    shared_functions!(place);

    fn new(place: Place<'f>) -> Result<Dataset<'f>> {
        let message = place.message(kind::DATASPACE, "dataspace");
        let space = message.and_then(|message| Dataspace::parse(&message.data, place.file.source.widths));
        let space = space.map_err(|error| place.locate(error))?;
        Ok(Dataset { place, space })
    }

    fn place(&self) -> &Place<'f> {
        &self.place
    }

    /// The sizes of the axes: none for a scalar, `[0]` for a null dataspace.
    pub fn shape(&self) -> &[usize] {
        &self.space.dims
    }

    /// Whether the dataset has a type and no value (`h5py.Empty`).
    pub fn is_null(&self) -> bool {
        self.space.is_null
    }

    /// The dtype of the array that [`read`](Self::read) returns.
    pub fn dtype(&self) -> Result<DType> {
        self.datatype().map(|datatype| datatype.dtype()).map_err(|error| self.place.locate(error))
    }

    /// Reads the values.
    pub fn read(&self) -> Result<Array> {
        let read = || {
            let datatype = self.datatype()?;
            let file = self.place.file;
            let storage = if self.is_null() {
                Storage::of_bytes(&[], 0, datatype.size())?
            } else {
                let layout = self.place.message(kind::LAYOUT, "data layout")?;
                Storage::of_dataset(file, self.place.messages(), &layout.data, &self.space.dims, datatype.size())?
            };
            file.budget.charge(self.place.object, storage.cost(), file.source.len(), &file.limits)?;
            elements::read(&datatype, &self.space.dims, &storage, file)
        };
        read().map_err(|error| self.place.locate(error))
    }

    fn datatype(&self) -> Result<Datatype> {
        let message = self.place.message(kind::DATATYPE, "datatype")?;
        Datatype::parse(&message.data, self.place.file.source.widths)
    }
}

impl<'f> Node<'f> {
    shared_functions!(place);

    fn place(&self) -> &Place<'f> {
        match self {
            Node::Group(group) => &group.place,
            Node::Dataset(dataset) => &dataset.place,
        }
    }
}

impl<'f> Iterator for Children<'_, 'f> {
    type Item = Result<Node<'f>>;

    fn next(&mut self) -> Option<Result<Node<'f>>> {
        self.rest.next().map(|child| self.group.child(child))
    }
}

impl fmt::Debug for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group(`{}`, {} children)", self.path(), self.list().len())
    }
}

impl fmt::Debug for Dataset<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset(`{}`, {:?})", self.path(), self.shape())
    }
}
