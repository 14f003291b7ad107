//! Data sets by name whose tables are Parquet files.

use std::path::Path;

use estimand_data::datasets::Folder;
use estimand_data::{Csv, Dataset};
use estimand_data_parquet::parquet;
use estimand_tensor::{Feature, Result};

use crate::rows;

const TITANIC: &str = "survived,pclass,sex,age,sibsp,parch,fare,embarked,class,who,adult_male,deck,embark_town,alive,alone\n\
     0,3,male,22.0,1,0,7.25,S,Third,man,True,E,Southampton,no,False\n\
     1,3,male,35.5,0,0,8.4583,Q,Third,man,True,C,Queenstown,no,True\n";

fn titanic(folder: &Path) -> Result<Dataset> {
    Ok(Folder::new(folder).tables(parquet::TABLES).load("titanic", "train")?.dataset())
}

/// One table in both formats: the same rows, columns of other types (i64, f64) turned into the
/// set's.
#[test]
fn a_folder_finds_parquet_and_csv_alike() -> Result<()> {
    let folder = rows::folder().join("datasets");
    std::fs::create_dir_all(&folder).unwrap();
    let csv = folder.join("titanic.csv");
    std::fs::write(&csv, TITANIC).unwrap();
    let expected = titanic(&folder)?;
    let (spec, expected) = (expected.spec()?, expected.iter().collect::<Result<Vec<_>>>()?);
    assert_eq!(expected.len(), 2);

    std::fs::create_dir(folder.join("titanic")).unwrap();
    parquet::write(&Csv::new(&csv).dataset(), folder.join("titanic/titanic.parquet"))?;
    // CSV is read as long as it is there.
    std::fs::write(&csv, TITANIC.replace("22.0", "23.0")).unwrap();
    assert_ne!(titanic(&folder)?.iter().collect::<Result<Vec<_>>>()?, expected);
    std::fs::remove_file(&csv).unwrap();
    let found = titanic(&folder)?;
    assert_eq!(found.spec()?, spec);
    assert_eq!(found.iter().collect::<Result<Vec<_>>>()?, expected);

    // Without the format the error says what is missing.
    let error = Folder::new(&folder).load("titanic", "train")?.dataset().spec().unwrap_err().to_string();
    assert!(error.contains("titanic.parquet") && error.contains("Folder::tables(parquet::TABLES)"), "{error}");
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}

/// 20,640 districts, as published; the mean of the label is 2.0686 (pyarrow and numpy).
#[test]
#[ignore = "needs the files of the sets in ESTIMAND_DATA; .ci/run asks for it"]
fn published_tables() -> Result<()> {
    let set = Folder::from_env()?.tables(parquet::TABLES).load("california_housing", "train")?;
    let batch = set.dataset().batch(30_000).iter().next().unwrap()?;
    let Feature::Dense(value) = &batch.labels()[set.info().label] else { panic!("dense") };
    let sum: f64 = value.as_slice::<f32>()?.iter().map(|&v| f64::from(v)).sum();
    assert_eq!(batch.n_rows(), 20_640);
    assert!((sum / 20_640.0 - 2.0686).abs() < 1e-4, "{}", sum / 20_640.0);
    Ok(())
}
