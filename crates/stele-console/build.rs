//! Builds the crate anew when the console's pages were built anew. It builds nothing itself: `make serve` does.

fn main() {
    println!("cargo:rerun-if-changed=../../console/dist");
}
