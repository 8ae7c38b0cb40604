/* Laid under a program (LD_PRELOAD): the call with the number FAULT_AT among the writes, syncs and renames of files fails with
 * FAULT_ERRNO, or kills the process if that is 0. FAULT_CALLS is a file that gets the number of calls at the end. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;
static long fault_at = -1;
static int fault_errno;
static const char *counted;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("FAULT_AT"), *number = getenv("FAULT_ERRNO");
    fault_at = at ? atol(at) : -1;
    fault_errno = number ? atoi(number) : 0;
    counted = getenv("FAULT_CALLS");
}

static ssize_t (*real_write)(int, const void *, size_t);

/* Whether this call fails; every one is noted, because the process may end in any way. */
static int fails(void) {
    long number = atomic_fetch_add(&calls, 1);
    if (counted) {
        char text[32];
        int length = snprintf(text, sizeof text, "%ld", number + 1);
        int file = open(counted, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (file >= 0) {
            if (!real_write) real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
            real_write(file, text, (size_t)length);
            close(file);
        }
    }
    if (number != fault_at) return 0;
    if (fault_errno == 0) raise(SIGKILL);
    errno = fault_errno;
    return 1;
}

static int is_file(int descriptor) {
    struct stat found;
    return fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode);
}

ssize_t write(int descriptor, const void *bytes, size_t length) {
    if (!real_write) real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    if (is_file(descriptor) && fails()) return -1;
    return real_write(descriptor, bytes, length);
}

int fsync(int descriptor) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    /* A folder that is synced has just been renamed in. */
    if (fails()) return -1;
    return real(descriptor);
}

int rename(const char *from, const char *to) {
    int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    if (fails()) return -1;
    return real(from, to);
}
