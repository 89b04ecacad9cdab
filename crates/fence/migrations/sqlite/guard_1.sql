-- The highest token seen per lock, the lock each object belongs to, and who moved objects between locks.
CREATE TABLE holdfast_fence_marks (
    lock  TEXT NOT NULL PRIMARY KEY,
    token INTEGER NOT NULL CHECK (token BETWEEN 1 AND 9007199254740991)
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_fence_bindings (
    object TEXT NOT NULL PRIMARY KEY,
    lock   TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE holdfast_fence_rebindings (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    object    TEXT NOT NULL,
    from_lock TEXT NOT NULL,
    to_lock   TEXT NOT NULL,
    actor     TEXT NOT NULL,
    reason    TEXT NOT NULL,
    at_ms     INTEGER NOT NULL
) STRICT;

CREATE INDEX holdfast_fence_rebindings_object ON holdfast_fence_rebindings (object, id);
