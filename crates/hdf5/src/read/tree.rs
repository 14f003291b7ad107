//! All objects of a file, found when it is opened.
//!
//! Headers and links are read at once: so their number has one budget, a circle is found, and a
//! walk over the tree ends. The messages of a dataset are interpreted when it is used.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use estimand_tensor::{Error, ErrorKind, Limits, Result};

use super::btree2::{self, Records};
use super::fractal::FractalHeap;
use super::header::{self, Message, kind};
use super::message::attribute::{self, Attribute};
use super::message::link::{self, Link, Target};
use super::source::{Metadata, Source};
use super::symbols;

/// The largest number of groups on the way to an object. Keras needs two for each nested model.
const MAX_DEPTH: usize = 256;

/// The largest number of bytes of a path.
const MAX_PATH: usize = 16_384;

/// An object: its messages, and whether it is a group.
pub(super) struct Object {
    /// The messages of the header, and the attributes that are elsewhere.
    pub messages: Vec<Message>,
    pub kind: Kind,
    /// The names of the attributes in order, and the indices of their messages; or why they cannot
    /// be read.
    pub attributes: Result<Vec<(String, usize)>>,
}

/// The kind of an object.
pub(super) enum Kind {
    /// A group with its children, ordered by name.
    Group(Vec<Child>),
    Dataset,
    /// Something that is not read, and why.
    Unread(Error),
}

/// A named child of a group.
pub(super) struct Child {
    pub name: String,
    /// The index of the object, or what the link is instead.
    pub object: Result<usize, &'static str>,
    /// The place in the order of creation, if it is stored.
    pub order: Option<u64>,
}

/// Reads all objects. The first one is the root.
pub(super) fn read(source: &Source, root: u64, limits: &Limits) -> Result<Vec<Object>> {
    let mut walk = Walk {
        metadata: Metadata::new(source),
        limits,
        objects: Vec::new(),
        addresses: HashMap::new(),
        parents: Vec::new(),
        groups: VecDeque::new(),
        n_entries: 0,
    };
    walk.add(root, Parent { object: 0, depth: 0, path_len: 0 })?;
    while let Some(group) = walk.groups.pop_front() {
        walk.group(group).map_err(|error| error.context(format!("in the group `{}`", walk.path(group))))?;
    }
    Ok(walk.objects)
}

struct Walk<'a> {
    metadata: Metadata<'a>,
    limits: &'a Limits,
    objects: Vec<Object>,
    /// The objects by the addresses of their headers.
    addresses: HashMap<u64, usize>,
    parents: Vec<Parent>,
    /// Groups whose links are not read yet.
    groups: VecDeque<usize>,
    /// The number of links and attributes.
    n_entries: usize,
}

#[derive(Clone, Copy)]
struct Parent {
    object: usize,
    depth: usize,
    path_len: usize,
}

impl Walk<'_> {
    /// Reads the header of an object that is not known yet.
    fn add(&mut self, address: u64, parent: Parent) -> Result<usize> {
        let index = self.objects.len();
        let mut object = Object { messages: Vec::new(), kind: Kind::Dataset, attributes: Ok(Vec::new()) };
        match header::read(&mut self.metadata, address) {
            Ok(messages) => {
                object.kind = classify(&messages);
                object.messages = messages;
            }
            Err(error) if *error.kind() == ErrorKind::Unsupported => object.kind = Kind::Unread(error),
            Err(error) => return Err(error),
        };
        object.attributes = match self.attributes(&mut object.messages) {
            Err(error) if *error.kind() != ErrorKind::Unsupported => return Err(error),
            found => found,
        };
        if matches!(object.kind, Kind::Group(_)) {
            self.groups.push_back(index);
        }
        self.objects.push(object);
        self.parents.push(parent);
        self.addresses.insert(address, index);
        Ok(index)
    }

    /// Reads the links of a group and the headers of its children.
    fn group(&mut self, group: usize) -> Result<()> {
        let links = match self.links(group) {
            Ok(links) => links,
            Err(error) if *error.kind() == ErrorKind::Unsupported => {
                self.objects[group].kind = Kind::Unread(error);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.n_entries += links.len();
        self.limits.check_entries(self.n_entries, "links and attributes in an HDF5 file")?;
        let mut children = Vec::with_capacity(links.len());
        for Link { name, target, order } in links {
            if name.is_empty() || name.contains(['/', '\0']) {
                return Err(Error::data(format!("a link has the name `{}`", name.escape_debug())));
            }
            let object = match target {
                Target::Unread(what) => Err(what),
                Target::Object(address) => Ok(self
                    .child(group, &name, address)
                    .map_err(|error| error.context(format!("in its child `{name}`")))?),
            };
            children.push(Child { name, object, order });
        }
        children.sort_by(|a, b| a.name.cmp(&b.name));
        if let Some(pair) = children.windows(2).find(|pair| pair[0].name == pair[1].name) {
            return Err(Error::data(format!("two links have the name `{}`", pair[0].name)));
        }
        self.objects[group].kind = Kind::Group(children);
        Ok(())
    }

    fn links(&mut self, group: usize) -> Result<Vec<Link>> {
        let widths = self.metadata.widths();
        let mut links = Vec::new();
        for message in &self.objects[group].messages {
            match message.kind {
                kind::SYMBOL_TABLE => links.extend(symbols::read(&mut self.metadata, &message.data, self.limits)?),
                kind::LINK => links.push(link::parse(&message.data, widths)?),
                kind::LINK_INFO => {
                    let Some([heap, tree]) = link::dense(&message.data, widths)? else { continue };
                    let records = btree2::read(&mut self.metadata, tree, Records::Links, self.limits)?;
                    let heap = FractalHeap::open(&mut self.metadata, heap, self.limits)?;
                    for record in records {
                        // A hash of the name, then the identifier.
                        let id = record.get(4..).unwrap_or_default();
                        links.push(link::parse(&heap.object(&mut self.metadata, id)?, widths)?);
                    }
                }
                _ => {}
            }
        }
        Ok(links)
    }

    /// Lists the attributes of an object. Those that are not in its header are added to its
    /// messages.
    fn attributes(&mut self, messages: &mut Vec<Message>) -> Result<Vec<(String, usize)>> {
        let dense = self.dense_attributes(messages)?;
        messages.extend(dense);
        let mut attributes = Vec::new();
        for (i, message) in messages.iter().enumerate().filter(|(_, message)| message.kind == kind::ATTRIBUTE) {
            if message.is_shared() {
                return Err(Error::unsupported("shared attributes are not read"));
            }
            attributes.push((Attribute::parse(&message.data, self.metadata.widths())?.name()?, i));
        }
        self.n_entries += attributes.len();
        self.limits.check_entries(self.n_entries, "links and attributes in an HDF5 file")?;
        attributes.sort();
        if let Some(pair) = attributes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(Error::data(format!("two attributes have the name `{}`", pair[0].0)));
        }
        Ok(attributes)
    }

    /// The attributes that are not in the header.
    fn dense_attributes(&mut self, messages: &[Message]) -> Result<Vec<Message>> {
        let widths = self.metadata.widths();
        let mut attributes = Vec::new();
        for message in messages.iter().filter(|message| message.kind == kind::ATTRIBUTE_INFO) {
            let Some([heap, tree]) = attribute::dense(&message.data, widths)? else { continue };
            let records = btree2::read(&mut self.metadata, tree, Records::Attributes, self.limits)?;
            let heap = FractalHeap::open(&mut self.metadata, heap, self.limits)?;
            for record in records {
                // The identifier, flags, the order of creation, a hash of the name.
                let Some((id, rest)) = record.split_at_checked(8).filter(|(_, rest)| !rest.is_empty()) else {
                    return Err(Error::data("a record of an attribute is too short"));
                };
                if rest[0] & 2 != 0 {
                    return Err(Error::unsupported("shared attributes are not read"));
                }
                attributes.push(Message::attribute(heap.object(&mut self.metadata, id)?.into_owned()));
            }
        }
        Ok(attributes)
    }

    /// The object that a link of a group names.
    fn child(&mut self, group: usize, name: &str, address: u64) -> Result<usize> {
        let Parent { depth, path_len, .. } = self.parents[group];
        let parent = Parent { object: group, depth: depth + 1, path_len: path_len + 1 + name.len() };
        if parent.depth > MAX_DEPTH || parent.path_len > MAX_PATH {
            let message = format!("a path of {} groups and {} bytes", parent.depth, parent.path_len);
            return Err(Error::data(format!("{message}; at most {MAX_DEPTH} and {MAX_PATH} are supported")));
        }
        let index = match self.addresses.entry(address) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(_) => return self.add(address, parent),
        };
        // A dataset may have several names. A group with several names makes circles, or a tree
        // with more paths than anyone can walk.
        if !matches!(self.objects[index].kind, Kind::Group(_)) {
            return Ok(index);
        }
        let message = match self.has_ancestor(group, index) {
            true => format!("the group `{}` contains itself", self.path(index)),
            false => format!("two links name the group `{}`", self.path(index)),
        };
        Err(Error::data(message).help("only datasets may have several names"))
    }

    fn has_ancestor(&self, mut object: usize, ancestor: usize) -> bool {
        loop {
            if object == ancestor {
                return true;
            }
            if object == 0 {
                return false;
            }
            object = self.parents[object].object;
        }
    }

    /// The path of an object, for errors.
    fn path(&self, object: usize) -> String {
        let mut names = Vec::new();
        let mut at = object;
        while at != 0 {
            let parent = self.parents[at].object;
            let name = match &self.objects[parent].kind {
                Kind::Group(children) => children.iter().find(|child| child.object == Ok(at)).map(|c| c.name.as_str()),
                _ => None,
            };
            // A group that is being read has no list of its children yet.
            names.push(name.unwrap_or("?"));
            at = parent;
        }
        names.push("");
        names.reverse();
        if names.len() == 1 { "/".to_string() } else { names.join("/") }
    }
}

/// What an object is, by its messages. The children of a group are not known yet.
fn classify(messages: &[Message]) -> Kind {
    let has = |kinds: &[u16]| messages.iter().any(|message| kinds.contains(&message.kind));
    if has(&[kind::SYMBOL_TABLE, kind::LINK_INFO, kind::LINK, kind::GROUP_INFO]) {
        Kind::Group(Vec::new())
    } else if has(&[kind::LAYOUT]) {
        Kind::Dataset
    } else if has(&[kind::DATATYPE]) {
        Kind::Unread(Error::unsupported("it is a committed datatype, which is not read"))
    } else {
        Kind::Unread(Error::unsupported("it is neither a group nor a dataset"))
    }
}
