package prose

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
)

// passage is a piece of prose: a comment, a string that a program may print, or a paragraph.
type passage struct {
	text  string
	at    []int // the line of each of its bytes
	quote bool  // a string of a program: it names the files of runs and of machines, not ours
}

func (p *passage) add(text string, line int) {
	if p.text != "" {
		text = " " + text
	}
	p.text += text
	for range text {
		p.at = append(p.at, line)
	}
	for len(p.at) < len(p.text) { // runes of several bytes
		p.at = append(p.at, line)
	}
}

// passages are what a file says to people. A file of an unknown kind says nothing.
func passages(name, content string) []passage {
	switch filepath.Ext(name) {
	case ".go":
		return ofGo(content)
	case ".md":
		return ofMarkdown(content)
	case ".kt":
		return ofKotlin(content)
	case ".xml", ".html":
		return ofLines(content, func(line string) string { return line })
	case ".sh", ".yaml", ".yml", "":
		return ofLines(content, func(line string) string {
			if i := strings.Index(line, "#"); i >= 0 && strings.TrimSpace(line[:i]) == "" {
				return line[i:]
			}
			return ""
		})
	}
	return nil
}

// ofGo joins the lines of a comment, so that a phrase is found across their ends.
func ofGo(content string) (out []passage) {
	var s scanner.Scanner
	fset := token.NewFileSet()
	f := fset.AddFile("", -1, len(content))
	s.Init(f, []byte(content), nil, scanner.ScanComments)
	last := -1 // the line of the comment before
	for {
		pos, tok, lit := s.Scan()
		line := f.Line(pos)
		switch tok {
		case token.EOF:
			return out
		case token.COMMENT:
			if last != line-1 || last < 0 {
				out = append(out, passage{})
			}
			for i, text := range strings.Split(lit, "\n") {
				out[len(out)-1].add(strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "//")), line+i)
			}
			last = line
		case token.STRING:
			last = -1
			if strings.HasPrefix(lit, "`json:") { // a field's tags
				continue
			}
			p := passage{quote: true}
			for i, text := range strings.Split(lit, "\n") {
				p.add(text, line+i)
			}
			out = append(out, p)
		default:
			if tok != token.SEMICOLON || lit != "\n" {
				last = -1
			}
		}
	}
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	kotlinText = regexp.MustCompile(`//.*|/\*.*|^\s*\*.*|"[^"]*"`)
)

// ofMarkdown leaves out what is fenced or indented as code, but for the paths that inline code names.
func ofMarkdown(content string) (out []passage) {
	fenced, open := false, false
	for i, line := range strings.Split(content, "\n") {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "```"):
			fenced, open = !fenced, false
		case fenced:
		case text == "":
			open = false
		case !open && strings.HasPrefix(line, "    "):
		default:
			if !open || strings.HasPrefix(text, "|") {
				out = append(out, passage{})
			}
			out[len(out)-1].add(text, i+1)
			open = true
		}
	}
	return out
}

func ofKotlin(content string) (out []passage) {
	last := -1
	for i, line := range strings.Split(content, "\n") {
		for _, text := range kotlinText.FindAllString(line, -1) {
			if quote := text[0] == '"'; quote || last != i {
				out = append(out, passage{quote: quote})
			}
			out[len(out)-1].add(strings.Trim(text, " /*\t"), i+1)
			if text[0] != '"' {
				last = i + 1
			}
		}
	}
	return out
}

func ofLines(content string, of func(string) string) []passage {
	var p passage
	for i, line := range strings.Split(content, "\n") {
		if text := of(line); text != "" {
			p.add(strings.TrimSpace(text), i+1)
		}
	}
	return []passage{p}
}
