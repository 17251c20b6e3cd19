//! The programs in `examples/` run, and what they assert holds.

#[path = "../../../examples/adaptive.rs"]
mod adaptive;
#[path = "../../../examples/cost.rs"]
mod cost;
#[path = "../../../examples/mean.rs"]
mod mean;
#[path = "../../../examples/own_model.rs"]
mod own_model;
#[path = "../../../examples/pate.rs"]
mod pate;
#[path = "../../../examples/resume.rs"]
mod resume;
#[path = "../../../examples/save_and_predict.rs"]
mod save_and_predict;
#[path = "../../../examples/train.rs"]
mod train;

#[path = "../../../examples/clipped_descent.rs"]
mod clipped_descent;
#[path = "../../../examples/dp_gd.rs"]
mod dp_gd;

#[test]
fn adaptive_runs() {
    adaptive::main().unwrap();
}

#[test]
fn cost_runs() {
    cost::main().unwrap();
}

#[test]
fn mean_runs() {
    mean::main().unwrap();
}

#[test]
fn own_model_runs() {
    own_model::main().unwrap();
}

#[test]
fn pate_runs() {
    pate::main().unwrap();
}

#[test]
fn resume_runs() {
    resume::main().unwrap();
}

#[test]
fn save_and_predict_runs() {
    save_and_predict::main().unwrap();
}

#[test]
fn train_runs() {
    train::main().unwrap();
}

#[test]
fn clipped_descent_runs() {
    clipped_descent::main().unwrap();
}

#[test]
fn dp_gd_runs() {
    dp_gd::main().unwrap();
}
