package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
)

// migrations[i] brings a database from schema version i to i+1; a released entry is never edited, a change is a new
// entry. The version is kept in PRAGMA user_version. The key of an event is run number << 32 | sequence number, so that
// the log of a run is one range of one tree.
var migrations = []string{
	`
CREATE TABLE runs (
	num      INTEGER PRIMARY KEY AUTOINCREMENT, -- never given to another run: readers remember it
	id       TEXT NOT NULL UNIQUE,
	parent   TEXT,
	kind     TEXT NOT NULL,              -- status kind
	archived INTEGER NOT NULL,
	slug     TEXT NOT NULL,
	name     TEXT NOT NULL,
	title    TEXT NOT NULL,
	repo     TEXT NOT NULL,
	created  INTEGER NOT NULL,           -- microseconds since 1970
	updated  INTEGER NOT NULL,           -- time of the last event
	elapsed  INTEGER NOT NULL,           -- milliseconds
	ended    INTEGER,                    -- microseconds since 1970
	seq      INTEGER NOT NULL,           -- last sequence number
	bytes    INTEGER NOT NULL            -- stored bytes of all events and blobs
);
-- Apart from runs, so that a list can be sorted and counted without reading documents.
CREATE TABLE docs (
	num     INTEGER PRIMARY KEY,
	private BLOB,                        -- what a run needs and no event shows
	doc     BLOB NOT NULL                -- derived state
);
CREATE INDEX runs_parent ON runs(parent) WHERE parent IS NOT NULL;
CREATE INDEX runs_names ON runs(slug, name, id);
CREATE INDEX runs_kind ON runs(kind, archived);
CREATE TABLE events (
	key   INTEGER PRIMARY KEY,
	name  TEXT NOT NULL,
	stage TEXT,
	state INTEGER,                       -- 1: carries a change of the run's state, 2: all of it
	body  BLOB NOT NULL
);
CREATE INDEX events_state ON events(key) WHERE state IS NOT NULL;
CREATE INDEX events_base ON events(key) WHERE state = 2;
CREATE TABLE blobs (
	num     INTEGER PRIMARY KEY,
	hash    TEXT NOT NULL UNIQUE,
	content BLOB NOT NULL
);
CREATE TABLE run_blobs (
	run  INTEGER NOT NULL,
	blob INTEGER NOT NULL,
	PRIMARY KEY (run, blob)
) WITHOUT ROWID;
CREATE INDEX run_blobs_blob ON run_blobs(blob);
CREATE TABLE variables (
	name  TEXT PRIMARY KEY,
	doc   BLOB NOT NULL
) WITHOUT ROWID;
`,
}

// refuseNewer looks at the schema version in the header of the file (bytes 60 to 63, big endian) before SQLite may write to it.
func refuseNewer(path string) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, 64)
	n, err := io.ReadFull(f, head)
	if n == 0 {
		return nil
	}
	if err != nil || string(head[:16]) != "SQLite format 3\x00" {
		return fmt.Errorf("%s is not an SQLite database; move it away or use another storage directory", path)
	}
	if found := int(head[60])<<24 | int(head[61])<<16 | int(head[62])<<8 | int(head[63]); found > len(migrations) {
		return &NewerSchemaError{Path: path, Found: found, Known: len(migrations)}
	}
	return nil
}

func migrate(ctx context.Context, db *sql.DB, path string) error {
	var have int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&have); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	// The version may be in the write-ahead log only, where the look at the header did not find it.
	if have > len(migrations) {
		return &NewerSchemaError{Path: path, Found: have, Known: len(migrations)}
	}
	for v := have; v < len(migrations); v++ {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, migrations[v]+fmt.Sprintf("PRAGMA user_version = %d;", v+1)); err != nil {
			tx.Rollback()
			return fmt.Errorf("bring %s to schema version %d: %w", path, v+1, err)
		}
		if err := tx.Commit(); err != nil {
			return fmt.Errorf("bring %s to schema version %d: %w", path, v+1, err)
		}
	}
	return nil
}
