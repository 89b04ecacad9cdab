/*
 * A library to be loaded before libc (LD_PRELOAD): makes fsync and fdatasync slow or fail, writes to regular files find
 * the disk full, and the wall clock show another time, as the numbers in a shared file say. They are read anew on each
 * call, so that whoever writes the file switches faults while the process runs. Clocks that measure lengths, and timers
 * on them, are left alone. Knows nothing of what it is loaded into.
 *
 * HOLDFAST_FAULTS names the file: six 32-bit numbers in the machine's byte order.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

struct control {
    volatile int32_t delay_ms;    /* how long each sync takes longer */
    volatile int32_t sync_errno;  /* what each sync fails with; 0: it works */
    volatile int32_t write_errno; /* what each write to a regular file fails with; 0: it works */
    volatile int32_t syncs;       /* syncs so far */
    volatile int32_t bitten;      /* calls that a disk fault hit so far */
    volatile int32_t clock_s;     /* how far ahead of the real time the wall clock is; negative: behind */
};

static struct control *control;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("HOLDFAST_FAULTS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *map = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED)
        control = map;
    close(fd);
}

static void bite(void) { __atomic_add_fetch(&control->bitten, 1, __ATOMIC_SEQ_CST); }

/* Waits as long as the delay in force says: taken back, it ends at once. */
static void delay(void) {
    struct timespec step = {0, 5 * 1000 * 1000};
    int32_t waited = 0;
    if (control->delay_ms > 0)
        bite();
    for (; waited < control->delay_ms; waited += 5)
        clock_nanosleep(CLOCK_MONOTONIC, 0, &step, NULL);
}

static int synced(int fd, const char *name) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    if (control) {
        __atomic_add_fetch(&control->syncs, 1, __ATOMIC_SEQ_CST);
        delay();
        if (control->sync_errno) {
            bite();
            errno = control->sync_errno;
            return -1;
        }
    }
    return real(fd);
}

int fsync(int fd) { return synced(fd, "fsync"); }
int fdatasync(int fd) { return synced(fd, "fdatasync"); }

/* Whether a write to this file is to fail. Sockets and pipes have no disk. */
static int full(int fd) {
    struct stat found;
    if (!control || !control->write_errno || fstat(fd, &found) != 0 || !S_ISREG(found.st_mode))
        return 0;
    bite();
    errno = control->write_errno;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *bytes, size_t length) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        real = REAL(write);
    return full(fd) ? -1 : real(fd, bytes, length);
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) {
    return full(fd) ? -1 : REAL(pwrite)(fd, bytes, length, at);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    return full(fd) ? -1 : REAL(pwrite64)(fd, bytes, length, at);
}

int posix_fallocate(int fd, off_t from, off_t length) {
    return full(fd) ? errno : REAL(posix_fallocate)(fd, from, length);
}

int fallocate(int fd, int mode, off_t from, off_t length) {
    return full(fd) ? -1 : REAL(fallocate)(fd, mode, from, length);
}

/* The system is asked itself: looking the real functions up would take time, and locks. */
int clock_gettime(clockid_t clock, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, clock, at);
    if (!failed && control && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI))
        at->tv_sec += control->clock_s;
    return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return -1;
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0)
        return (time_t)-1;
    if (at)
        *at = now.tv_sec;
    return now.tv_sec;
}
