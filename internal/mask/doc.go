// Package mask hides secrets and addresses in texts that are stored and shown: keys of known
// forms, PEM blocks, what follows password= and the like, e-mail addresses, and values that it
// is given. Of each the last four characters stay. It knows texts alone.
//
//	New          a Masker, with values of its own
//	Masker.Text  a whole text
//	Masker.JSON  the strings of a document, also its names
//	Names        keeps masked names apart
//	NewLines     a log, line by line
//	NewPieces    a text, piece by piece
//	NewWriter    a stream, whatever the pieces are in which it comes
//	HoldsKey     tells of keys alone, and hides nothing
package mask
