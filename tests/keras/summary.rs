//! The table of `summary`. The texts were printed by `model.summary()` of tf.keras 2.15.

use estimand::graph::Graph;
use estimand::keras::{Functional, Input, Model, Sequential, SharedLayer};
use estimand::nn::{Add, Bidirectional, Concat};
use estimand::prelude::*;

#[test]
fn layers_one_after_another() {
    let model =
        Sequential::new().input([784]).add(Dense::new(512).relu()).add(Dense::new(10).softmax()).build().unwrap();
    let expected = r#"Model: "sequential"
_________________________________________________________________
 Layer (type)                Output Shape              Param #   
=================================================================
 dense (Dense)               (None, 512)               401920    
                                                                 
 dense_1 (Dense)             (None, 10)                5130      
                                                                 
=================================================================
Total params: 407050 (1.55 MB)
Trainable params: 407050 (1.55 MB)
Non-trainable params: 0 (0.00 Byte)
_________________________________________________________________"#;
    assert_eq!(model.summary(), expected);
}

#[test]
fn long_names_go_on_in_the_next_line() {
    let model = Sequential::new()
        .name("cnn")
        .input([28, 28, 1])
        .add(Conv2d::new(8, 3))
        .add(BatchNorm::new())
        .add(Activation::Relu)
        .add(MaxPool2d::new(2))
        .add(Flatten::new())
        .add(Dropout::new(0.5))
        .add(Dense::new(10).name("dense_2"))
        .build()
        .unwrap();
    let expected = r#"Model: "cnn"
_________________________________________________________________
 Layer (type)                Output Shape              Param #   
=================================================================
 conv2d (Conv2D)             (None, 26, 26, 8)         80        
                                                                 
 batch_normalization (Batch  (None, 26, 26, 8)         32        
 Normalization)                                                  
                                                                 
 activation (Activation)     (None, 26, 26, 8)         0         
                                                                 
 max_pooling2d (MaxPooling2  (None, 13, 13, 8)         0         
 D)                                                              
                                                                 
 flatten (Flatten)           (None, 1352)              0         
                                                                 
 dropout (Dropout)           (None, 1352)              0         
                                                                 
 dense_2 (Dense)             (None, 10)                13530     
                                                                 
=================================================================
Total params: 13642 (53.29 KB)
Trainable params: 13626 (53.23 KB)
Non-trainable params: 16 (64.00 Byte)
_________________________________________________________________"#;
    assert_eq!(model.summary(), expected);
}

#[test]
fn branches_show_connections() {
    let (a, b) = (Input::new([4]).name("a").tensor(), Input::new([6]).name("b").tensor());
    let x = Dense::new(3).relu().on(&a);
    let y = Dense::new(3).on(&b);
    let z = Concat::new().on(&[&x, &y]);
    let w = Add::new().on(&[&x, &y]);
    let one = Dense::new(1).name("score_with_a_long_name_that_wraps").on(&z);
    let two = Dense::new(2).name("klass").on(&w);
    let model = Model::new(&[&a, &b], &[&one, &two]).unwrap();
    let expected = r#"Model: "model"
__________________________________________________________________________________________________
 Layer (type)                Output Shape                 Param #   Connected to                  
==================================================================================================
 a (InputLayer)              [(None, 4)]                  0         []                            
                                                                                                  
 b (InputLayer)              [(None, 6)]                  0         []                            
                                                                                                  
 dense (Dense)               (None, 3)                    15        ['a[0][0]']                   
                                                                                                  
 dense_1 (Dense)             (None, 3)                    21        ['b[0][0]']                   
                                                                                                  
 concatenate (Concatenate)   (None, 6)                    0         ['dense[0][0]',               
                                                                     'dense_1[0][0]']             
                                                                                                  
 add (Add)                   (None, 3)                    0         ['dense[0][0]',               
                                                                     'dense_1[0][0]']             
                                                                                                  
 score_with_a_long_name_tha  (None, 1)                    7         ['concatenate[0][0]']         
 t_wraps (Dense)                                                                                  
                                                                                                  
 klass (Dense)               (None, 2)                    8         ['add[0][0]']                 
                                                                                                  
==================================================================================================
Total params: 51 (204.00 Byte)
Trainable params: 51 (204.00 Byte)
Non-trainable params: 0 (0.00 Byte)
__________________________________________________________________________________________________"#;
    assert_eq!(model.summary(), expected);
    assert_eq!(
        model.weight_names().collect::<Vec<_>>(),
        [
            "dense/kernel",
            "dense/bias",
            "dense_1/kernel",
            "dense_1/bias",
            "score_with_a_long_name_that_wraps/kernel",
            "score_with_a_long_name_that_wraps/bias",
            "klass/kernel",
            "klass/bias"
        ]
    );
}

#[test]
fn shared_layers_show_all_their_calls() {
    let input = Input::new([4]).name("input_2").tensor();
    let dense = SharedLayer::new(Dense::new(4).name("dense_5"));
    let twice = dense.on(&dense.on(&input));
    let sum = Add::new().name("add_1").on(&[&twice, &input, &input]);
    let model = Model::named("model_2", &input, &sum).unwrap();
    let expected = r#"Model: "model_2"
__________________________________________________________________________________________________
 Layer (type)                Output Shape                 Param #   Connected to                  
==================================================================================================
 input_2 (InputLayer)        [(None, 4)]                  0         []                            
                                                                                                  
 dense_5 (Dense)             (None, 4)                    20        ['input_2[0][0]',             
                                                                     'dense_5[0][0]']             
                                                                                                  
 add_1 (Add)                 (None, 4)                    0         ['dense_5[1][0]',             
                                                                     'input_2[0][0]',             
                                                                     'input_2[0][0]']             
                                                                                                  
==================================================================================================
Total params: 20 (80.00 Byte)
Trainable params: 20 (80.00 Byte)
Non-trainable params: 0 (0.00 Byte)
__________________________________________________________________________________________________"#;
    assert_eq!(model.summary(), expected);
}

#[test]
fn inner_models_are_one_row_and_can_be_frozen() {
    let steps = Input::new([Graph::ANY, 5.into()]).tensor();
    let inner = Sequential::new().name("inner").input([4]).add(Dense::new(3)).add(Dense::new(2)).build().unwrap();
    let last = Lstm::new(4).on(&steps);
    let output = Dense::new(1).name("dense_4").on(&inner.on(&last));
    let mut model = Model::named("model_1", &steps, &output).unwrap();
    let expected = r#"Model: "model_1"
_________________________________________________________________
 Layer (type)                Output Shape              Param #   
=================================================================
 input_1 (InputLayer)        [(None, None, 5)]         0         
                                                                 
 lstm (LSTM)                 (None, 4)                 160       
                                                                 
 inner (Sequential)          (None, 2)                 23        
                                                                 
 dense_4 (Dense)             (None, 1)                 3         
                                                                 
=================================================================
Total params: 186 (744.00 Byte)
Trainable params: 186 (744.00 Byte)
Non-trainable params: 0 (0.00 Byte)
_________________________________________________________________"#;
    assert_eq!(model.summary(), expected);
    model.set_layer_trainable("inner", false).unwrap();
    assert!(model.summary().contains(
        "Total params: 186 (744.00 Byte)\nTrainable params: 163 (652.00 Byte)\nNon-trainable params: 23 (92.00 Byte)"
    ));
}

#[test]
fn wrappers_and_ids() {
    let model = Sequential::new()
        .name("sequential_3")
        .input(Input::new([5]).dtype(DType::I64))
        .add(Embedding::new(10, 4))
        .add(Bidirectional::new(Lstm::new(3)))
        .build()
        .unwrap();
    let expected = r#"Model: "sequential_3"
_________________________________________________________________
 Layer (type)                Output Shape              Param #   
=================================================================
 embedding (Embedding)       (None, 5, 4)              40        
                                                                 
 bidirectional (Bidirection  (None, 6)                 192       
 al)                                                             
                                                                 
=================================================================
Total params: 232 (928.00 Byte)
Trainable params: 232 (928.00 Byte)
Non-trainable params: 0 (0.00 Byte)
_________________________________________________________________"#;
    assert_eq!(model.summary(), expected);
}

/// A model with branches, a shared layer and a name that must be escaped.
#[test]
fn pictures_show_every_layer_and_arrow() {
    let (a, b) = (Input::new([4]).name("a").tensor(), Input::new([4]).name("b").tensor());
    let tower = SharedLayer::new(Dense::new(3));
    let both = Concat::new().on(&[tower.on(&a), tower.on(&b)]);
    let model = Model::new(&[&a, &b], &Dense::new(1).name("p<q").on(&both)).unwrap();
    let plot = estimand::keras::plot_model(&model);
    let expected = "digraph G {
  rankdir=TB;
  node [shape=box];
  \"a\" [label=\"a\\nInputLayer\"];
  \"b\" [label=\"b\\nInputLayer\"];
  \"dense\" [label=\"dense\\nDense\"];
  \"concatenate\" [label=\"concatenate\\nConcatenate\"];
  \"p<q\" [label=\"p<q\\nDense\"];
  \"a\" -> \"dense\";
  \"b\" -> \"dense\";
  \"dense\" -> \"concatenate\";
  \"concatenate\" -> \"p<q\";
}
";
    assert_eq!(plot.dot(), expected);
    let svg = plot.show_shapes().svg();
    assert!(svg.contains("<text") && svg.contains("p&lt;q") && !svg.contains("p<q"), "{svg}");
    assert!(svg.contains("[batch, 6]"), "{svg}");
    assert_eq!((svg.matches("<rect").count(), svg.matches("<line").count()), (5, 4));
    let error = estimand::keras::plot_model(&model).write("model.png").unwrap_err().to_string();
    assert!(error.contains(".svg or .dot"), "{error}");
}
