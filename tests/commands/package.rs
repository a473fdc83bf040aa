// SPDX-License-Identifier: MIT OR Apache-2.0
//! Crates of --package cargo: of fixed sizes with weights in a file, of any batch, and of several inputs.
use std::thread;

fn image() -> [f32; 784] {
    let bytes = std::fs::read(std::env::var("DIGIT").unwrap()).unwrap();
    let mut image = [0f32; 784];
    for (to, from) in image.iter_mut().zip(&bytes[bytes.len() - 784..]) {
        *to = f32::from(*from) / 255.0;
    }
    image
}

fn digit(logits: &[f32]) -> usize {
    (0..10).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap()
}

#[test]
fn one_image_on_two_threads() {
    let read = || {
        let mut workspace = digits::Workspace::new();
        let mut logits = [0f32; digits::LOGITS_LEN];
        digits::run(&mut workspace, &image(), &mut logits).unwrap();
        digit(&logits)
    };
    let other = thread::spawn(read);
    assert_eq!((read(), other.join().unwrap()), (7, 7));
}

#[test]
fn any_batch() {
    let mut workspace = digits_batch::Workspace::new();
    let three = [image(), image(), image()].concat();
    let outputs = digits_batch::run(&mut workspace, (&three, [3, 1, 28, 28])).unwrap();
    let (logits, shape) = outputs.logits;
    assert_eq!((shape, logits.len()), ([3, 10], 30));
    assert!((0..3).all(|i| digit(&logits[10 * i..10 * i + 10]) == 7));
    let run = |w: &mut _, data: &[f32], shape| digits_batch::run(w, (data, shape)).err();
    assert_eq!(run(&mut workspace, &three, [2, 1, 28, 28]), Some(digits_batch::Error::Shape));
    assert_eq!(run(&mut workspace, &three, [3, 28, 28, 1]), Some(digits_batch::Error::Shape));
    let many = vec![0f32; 9 * 784];
    assert_eq!(run(&mut workspace, &many, [9, 1, 28, 28]), Some(digits_batch::Error::Limit));
    assert!(digits_batch::Error::Limit.to_string().contains("stated bound"));
}

#[test]
fn several_inputs() {
    let mut y = [0f32; several::Y_LEN];
    let (a, w, b) = ([1., 2., 3., 4., 5., 6.], [1., 0., 0., 1., 1., 1.], [10., 20.]);
    several::run(&mut several::Workspace::new(), &a, &w, &b, &mut y).unwrap();
    assert_eq!(y, [14., 25., 20., 31.]);
}
