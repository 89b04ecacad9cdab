-- The objects of the Storage Service. The lock and token are those of the last accepted write.
CREATE TABLE holdfast_fence_objects (
    name    TEXT NOT NULL PRIMARY KEY,
    lock    TEXT NOT NULL,
    token   INTEGER NOT NULL,
    version INTEGER NOT NULL,
    data    TEXT NOT NULL
) STRICT;
