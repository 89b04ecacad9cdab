-- The objects of the Storage Service. The lock and token are those of the last accepted write.
CREATE TABLE holdfast_fence.objects (
    name    text COLLATE "C" PRIMARY KEY,
    lock    text COLLATE "C" NOT NULL,
    token   bigint NOT NULL,
    version bigint NOT NULL,
    data    text NOT NULL
);
