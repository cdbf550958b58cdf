package protocol

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Sealer makes state safe to travel through a client: nobody else can read, forge
// or reuse it for another purpose, or after its time.
type Sealer interface {
	// Seal encloses plain for a purpose; Open with the same purpose gives it back
	// until ttl has passed. The result is URL-safe text.
	Seal(purpose string, plain []byte, ttl time.Duration) (string, error)
	// Open returns an error that wraps ErrSealInvalid for anything not sealed
	// here, for this purpose, and still valid.
	Open(purpose, sealed string) ([]byte, error)
}

const (
	keySize     = 32
	keyIDSize   = 4
	sealHeader  = keyIDSize + 8 // key id, expiry in Unix milliseconds
	sealVersion = "s1."
)

// sealKey seals with AES-256-GCM. A sealed text is version, then base64 of key id,
// expiry, nonce and ciphertext; purpose, key id and expiry are authenticated too.
type sealKey struct {
	aead cipher.AEAD
	id   [keyIDSize]byte
	now  func() time.Time
}

func newSealKey(secret []byte) (*sealKey, error) {
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, err
	}
	k := &sealKey{now: time.Now}
	if k.aead, err = cipher.NewGCM(block); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte("key id\x00"), secret...))
	copy(k.id[:], sum[:])
	return k, nil
}

func (k *sealKey) Seal(purpose string, plain []byte, ttl time.Duration) (string, error) {
	n := k.aead.NonceSize()
	out := make([]byte, sealHeader+n, sealHeader+n+len(plain)+k.aead.Overhead())
	copy(out, k.id[:])
	binary.BigEndian.PutUint64(out[keyIDSize:], uint64(k.now().Add(ttl).UnixMilli()))
	if _, err := rand.Read(out[sealHeader:]); err != nil {
		return "", err
	}
	out = k.aead.Seal(out, out[sealHeader:], plain, additional(purpose, out[:sealHeader]))
	return sealVersion + base64.RawURLEncoding.EncodeToString(out), nil
}

func (k *sealKey) Open(purpose, sealed string) ([]byte, error) {
	if len(sealed) < len(sealVersion) || sealed[:len(sealVersion)] != sealVersion {
		return nil, ErrSealInvalid
	}
	// One sealed text has one spelling: strict about the last bits, and without the
	// line feeds that the decoder would skip.
	if strings.ContainsAny(sealed, "\r\n") {
		return nil, ErrSealInvalid
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed[len(sealVersion):])
	n := k.aead.NonceSize()
	if err != nil || len(raw) < sealHeader+n || !bytes.Equal(raw[:keyIDSize], k.id[:]) {
		return nil, ErrSealInvalid
	}
	plain, err := k.aead.Open(nil, raw[sealHeader:sealHeader+n], raw[sealHeader+n:], additional(purpose, raw[:sealHeader]))
	if err != nil {
		return nil, ErrSealInvalid
	}
	if expiry := int64(binary.BigEndian.Uint64(raw[keyIDSize:])); k.now().UnixMilli() >= expiry {
		return nil, fmt.Errorf("%w: it expired", ErrSealInvalid)
	}
	return plain, nil
}

func additional(purpose string, header []byte) []byte {
	return append(append([]byte(purpose), 0), header...)
}

// lazySealer makes its key when it is first needed.
type lazySealer struct {
	once   sync.Once
	secret func() ([]byte, error)
	key    *sealKey
	err    error
}

func (l *lazySealer) get() (*sealKey, error) {
	l.once.Do(func() {
		var secret []byte
		if secret, l.err = l.secret(); l.err == nil {
			l.key, l.err = newSealKey(secret)
		}
	})
	return l.key, l.err
}

func (l *lazySealer) Seal(purpose string, plain []byte, ttl time.Duration) (string, error) {
	k, err := l.get()
	if err != nil {
		return "", err
	}
	return k.Seal(purpose, plain, ttl)
}

func (l *lazySealer) Open(purpose, sealed string) ([]byte, error) {
	k, err := l.get()
	if err != nil {
		return nil, err
	}
	return k.Open(purpose, sealed)
}

func newSecret() ([]byte, error) {
	secret := make([]byte, keySize)
	_, err := rand.Read(secret)
	return secret, err
}

// newEphemeralSealer seals with a key that dies with the process.
func newEphemeralSealer() Sealer { return &lazySealer{secret: newSecret} }

// NewFileSealer seals with a key kept in a file, so that what one process sealed
// another opens. The file is made when it is first needed, readable by its owner
// only; two processes that make it at once agree on one key. Where nothing can be
// read or written the key dies with the process.
func NewFileSealer(path string) Sealer {
	return &lazySealer{secret: func() ([]byte, error) {
		secret, err := keyFile(path)
		if err != nil {
			return newSecret()
		}
		return secret, nil
	}}
}

// keyFile reads the key, or makes the file: written aside and linked into place,
// which fails when another process was first, and then its key counts.
func keyFile(path string) ([]byte, error) {
	secret, err := readKey(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return secret, err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if secret, err = newSecret(); err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp(dir, ".key-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp.Name())
	_, err = temp.Write(secret)
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err != nil {
		return nil, err
	}
	if err := os.Link(temp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return readKey(path)
}

func readKey(path string) ([]byte, error) {
	secret, err := os.ReadFile(path)
	if err == nil && len(secret) != keySize {
		err = fmt.Errorf("%s: not a key of %d bytes", path, keySize)
	}
	return secret, err
}
