/* Laid under a program (LD_PRELOAD): the call with the number FAULT_AT among the writes, syncs and renames of files fails with
 * FAULT_ERRNO, or kills the process if that is 0. FAULT_CALLS is a file that gets the number of calls at the end, and FAULT_CELLS
 * one that gets the number of cells that were finished: files that have got their names in `cells`. FAULT_CORES is how many cores
 * the machine seems to have: as many jobs as that are run. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls, cells;
static long fault_at = -1;
static int fault_errno;
static const char *counted, *finished;

__attribute__((constructor)) static void begin(void) {
    const char *at = getenv("FAULT_AT"), *number = getenv("FAULT_ERRNO");
    fault_at = at ? atol(at) : -1;
    fault_errno = number ? atoi(number) : 0;
    counted = getenv("FAULT_CALLS");
    finished = getenv("FAULT_CELLS");
}

static ssize_t (*real_write)(int, const void *, size_t);

/* Writes a number down at once, because the process may end in any way. */
static void note(const char *path, long number) {
    char text[32];
    int length = snprintf(text, sizeof text, "%ld", number);
    int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
    if (file < 0) return;
    if (!real_write) real_write = (ssize_t (*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    real_write(file, text, (size_t)length);
    close(file);
}

/* Whether this call fails. */
static int fails(void) {
    long number = atomic_fetch_add(&calls, 1);
    note(counted, number + 1);
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
    int status = real(from, to);
    size_t length = strlen(to);
    if (status == 0 && length > 5 && strcmp(to + length - 5, ".cell") == 0) note(finished, atomic_fetch_add(&cells, 1) + 1);
    return status;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
    const char *cores = getenv("FAULT_CORES");
    int (*real)(pid_t, size_t, cpu_set_t *) =
        (int (*)(pid_t, size_t, cpu_set_t *))dlsym(RTLD_NEXT, "sched_getaffinity");
    if (!cores) return real(process, size, set);
    CPU_ZERO_S(size, set);
    for (int core = 0; core < atoi(cores); core++) CPU_SET_S(core, size, set);
    return 0;
}
