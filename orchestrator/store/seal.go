package store

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
)

// seal keeps from clients how much everybody has: the places in lists, by which the next page begins, are numbers of
// the whole server. Its key is in the database, so that a place leads on after a restart.
type seal struct {
	block cipher.Block
	texts cipher.AEAD
}

const sealBytes = 32 // of a key

func newSeal(key []byte) (s seal, err error) {
	if len(key) != sealBytes {
		return seal{}, errors.New("the key of cursors hasn't its length")
	}
	if s.block, err = aes.NewCipher(key); err == nil {
		s.texts, err = cipher.NewGCMWithRandomNonce(s.block)
	}
	return s, err
}

// readSeal returns the seal of a database.
func readSeal(ctx context.Context, db rower) (seal, error) {
	var key []byte
	if err := db.QueryRowContext(ctx, "SELECT key FROM seal").Scan(&key); err != nil {
		return seal{}, err
	}
	return newSeal(key)
}

// passingSeal returns a seal of this process, for a database that can't be read.
func passingSeal() (seal, error) {
	key := make([]byte, sealBytes)
	_, _ = rand.Read(key) // it never fails
	return newSeal(key)
}

// The lists whose places are numbers, by at most 11 letters each.
const (
	inAudit       = "audit"
	inFeed        = "feed"
	inOccurrences = "occurrences"
	inQuestions   = "questions"
	inSchedules   = "schedules"
	inSessions    = "sessions"
	inWebhooks    = "webhooks"
)

// A sealed number has two halves, so that every client can read it, also one whose numbers are floats. Those that are
// stored are so much smaller that hardly a number that wasn't given out is taken for one.
const (
	halfBits   = 26
	halfMask   = 1<<halfBits - 1
	numberBits = 40
)

// rounds are as many as FF1 of NIST SP 800-38G has.
const rounds = 10

// mix is the function of a round: what is added to one half for the other one.
func (s seal) mix(list string, round int, half int64) int64 {
	var in [aes.BlockSize]byte
	copy(in[:11], list)
	in[11] = byte(round)                              //nolint:gosec // it is below rounds
	binary.BigEndian.PutUint32(in[12:], uint32(half)) //nolint:gosec // it has 26 bits
	s.block.Encrypt(in[:], in[:])
	return int64(binary.BigEndian.Uint32(in[:])) & halfMask
}

// number returns the sealed number of a seq in a list.
func (s seal) number(list string, seq int64) int64 {
	left, right := seq>>halfBits, seq&halfMask
	for round := range rounds {
		left, right = right, left^s.mix(list, round, right)
	}
	return left<<halfBits | right
}

// seq returns what number was made of. The error is an Input fault: it was not given out for the list.
func (s seal) seq(list string, number int64) (int64, error) {
	left, right := number>>halfBits, number&halfMask
	if left>>halfBits != 0 {
		return 0, errCursor()
	}
	for round := rounds - 1; round >= 0; round-- {
		left, right = right^s.mix(list, round, left), left
	}
	if seq := left<<halfBits | right; seq>>numberBits == 0 {
		return seq, nil
	}
	return 0, errCursor()
}

// begin is seq of where a page begins; 0 is the list's own beginning.
func (s seal) begin(list string, number int64) (int64, error) {
	if number == 0 {
		return 0, nil
	}
	return s.seq(list, number)
}

// text seals some bytes as the text of a cursor.
func (s seal) text(plain []byte) string {
	return cursorText.EncodeToString(s.texts.Seal(nil, nil, plain, nil)) //nolint:gosec // it makes a nonce of its own
}

// bytes returns what a text was made of. The error is an Input fault.
func (s seal) bytes(text string) ([]byte, error) {
	sealed, err := cursorText.DecodeString(text)
	if err != nil {
		return nil, errCursor()
	}
	plain, err := s.texts.Open(nil, nil, sealed, nil)
	if err != nil {
		return nil, errCursor()
	}
	return plain, nil
}
