//! The manual page gannet.yaml(5): the page of settings, written for man(1).

use std::fmt::Write as _;

/// Returns the page in the macros of man(7).
pub fn man_page() -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut out = format!(
        ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH gannet.yaml 5 \"\" \"gannet {version}\" \"Gannet\"\n\
         .SH NAME\ngannet.yaml \\- configuration of the DNS server gannet\n\
         .SH SYNOPSIS\n.B /etc/gannet/gannet.yaml\n.SH DESCRIPTION\n"
    );
    let markdown = super::manual();
    let mut lines = markdown.lines().peekable();
    let mut is_example = false;
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            is_example = !is_example;
            out.push_str(if is_example { ".PP\n.nf\n.RS 4\n" } else { ".RE\n.fi\n" });
        } else if is_example {
            write_line(&mut out, &escaped(line));
        } else if let Some(heading) = line.strip_prefix("### ") {
            let _ = writeln!(out, ".SS {}", inline(heading));
        } else if let Some(heading) = line.strip_prefix("## ") {
            let _ = writeln!(out, ".SH {}", inline(heading));
        } else if line.starts_with("# ") || line.starts_with("<!--") || line.starts_with("|---") {
            // The name is in the header; comments and rules of tables are for Markdown.
        } else if let Some(row) = line.strip_prefix("| ") {
            // The head of a table says nothing that the page does not.
            if lines.peek().is_none_or(|next| !next.starts_with("|---")) {
                write_row(&mut out, row);
            }
        } else if let Some(item) = line.strip_prefix("- ") {
            out.push_str(".IP \\(bu 2\n");
            write_line(&mut out, &inline(item));
        } else if line.is_empty() {
            out.push_str(".PP\n");
        } else {
            write_line(&mut out, &inline(line));
        }
    }
    out.push_str(".SH SEE ALSO\n.BR gannet (1)\n");
    out
}

/// Writes a row of a table with two columns as a term and its description.
fn write_row(out: &mut String, row: &str) {
    const BAR: char = '\u{1}';
    let row = row.replace("\\|", &BAR.to_string());
    let mut cells = row.split('|').map(|cell| inline(cell.trim()).replace(BAR, "|"));
    let (term, text) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
    out.push_str(".TP\n");
    write_line(out, &term);
    write_line(out, &text);
}

/// Writes a line of text; one that begins like a request is kept from being one.
fn write_line(out: &mut String, text: &str) {
    if text.starts_with(['.', '\'']) {
        out.push_str("\\&");
    }
    out.push_str(text);
    out.push('\n');
}

/// Returns text with the characters escaped that mean something to man(7), or that are outside
/// ASCII.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\*(Aq"),
            c if c.is_ascii() => out.push(c),
            c => {
                let _ = write!(out, "\\[u{:04X}]", u32::from(c));
            }
        }
    }
    out
}

/// Returns a line of Markdown: code in bold, emphasis in italics.
fn inline(text: &str) -> String {
    let mut out = String::new();
    let (mut is_code, mut is_emphasis) = (false, false);
    for c in text.chars() {
        match c {
            '`' => {
                is_code = !is_code;
                out.push_str(if is_code { "\\fB" } else { "\\fR" });
            }
            '*' if !is_code => {
                is_emphasis = !is_emphasis;
                out.push_str(if is_emphasis { "\\fI" } else { "\\fR" });
            }
            c => out.push_str(&escaped(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_on_the_manual_page() {
        let page = man_page();
        for row in schema::rows() {
            let path = escaped(row.path);
            let is_there =
                [".SH", ".SS"].iter().any(|form| page.contains(&format!("{form} \\fB{path}\\fR\n")));
            assert!(is_there, "{}", row.path);
        }
    }

    #[test]
    fn text_is_no_request() {
        assert_eq!(inline("a `*-'` and *µ*"), "a \\fB*\\-\\*(Aq\\fR and \\fI\\[u00B5]\\fR");
        let mut out = String::new();
        write_line(&mut out, ".hidden");
        write_row(&mut out, "`a\\|b` | text |");
        assert_eq!(out, "\\&.hidden\n.TP\n\\fBa|b\\fR\ntext\n");
        let page = man_page();
        let known =
            [".ie", ".el", ".TH", ".SH", ".SS", ".PP", ".TP", ".nf", ".fi", ".RS", ".RE", ".B", ".BR", ".IP"];
        for line in page.lines().filter(|line| line.starts_with('.')) {
            assert!(known.contains(&line.split(' ').next().unwrap_or("")), "{line}");
        }
    }
}
