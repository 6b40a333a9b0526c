// Package prose checks what people read: the words of comments, messages and documents, the width of lines, and that
// a file named in a comment or a document is there. It has tests only; words.txt is its list of words.
package prose
