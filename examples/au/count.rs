// The Agentic Unit of docs/agentic-units.md, which counts lines and words, with Rust's standard library alone:
//
//     rustc -O --target x86_64-unknown-linux-musl count.rs && aod au run ./count --stdin FILE
//
// Use serde_json where text goes into the JSON.

use std::io::{self, Read, Write};

const CARD: &str = r#"{
  "name": "count",
  "version": "1.0.0",
  "description": "Counts the lines and words of a text.",
  "capabilities": ["text-statistics"],
  "inputs": [{"media_type": "text/*", "description": "UTF-8, at most 10 MiB"}],
  "outputs": [{"media_type": "application/json", "description": "lines and words"}],
  "config": {
    "min-length": {"type": "integer", "description": "Shorter words, in bytes, don't count.", "default": 1}
  }
}"#;

const MAX_BYTES: u64 = 10 << 20;
const USAGE: &str = "Invalid arguments. Expected --min-length or --describe";

fn main() {
    let printed = run().and_then(|json| writeln!(io::stdout(), "{json}").map_err(|_| (1, "The result can't be written")));
    if let Err((code, message)) = printed {
        eprintln!("Error: {message}");
        std::process::exit(code);
    }
}

fn run() -> Result<String, (i32, &'static str)> {
    let mut min_length = 1;
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--describe") => return Ok(CARD.to_string()),
            Some("--min-length") => {
                let value = arguments.next().and_then(|v| v.to_str().and_then(|v| v.parse().ok()));
                min_length = value.ok_or((2, USAGE))?;
            }
            Some(joined) if joined.starts_with("--min-length=") => {
                min_length = joined["--min-length=".len()..].parse().map_err(|_| (2, USAGE))?;
            }
            _ => return Err((2, USAGE)),
        }
    }
    let mut text = Vec::new();
    io::stdin().take(MAX_BYTES + 1).read_to_end(&mut text).map_err(|_| (1, "stdin can't be read"))?;
    if text.len() as u64 > MAX_BYTES {
        return Err((2, "Text too large. Maximum supported: 10 MiB"));
    }
    if text.is_empty() {
        return Err((2, "No text"));
    }
    let text = std::str::from_utf8(&text).map_err(|_| (2, "Invalid text. Expected UTF-8"))?;
    let words = text.split_ascii_whitespace().filter(|word| word.len() >= min_length).count();
    Ok(format!(r#"{{"lines": {}, "words": {words}}}"#, text.matches('\n').count()))
}
