/* Counts the changing calls of one process, over all its threads, and does something at the Nth.

   FAULT_AT      which call, from 1; 0 counts only
   FAULT_HOW     kill: die before it; torn: do half of a write, then die; short: do half of a write;
                 error: fail with EIO
   FAULT_CALLS   the calls that count, between commas: ",write,fsync,"
   FAULT_UNDER   only calls on descriptors of files whose path begins with this
   FAULT_LOG     a file that gets one line for each call that counts, and "fired" after the last

   Programs started by the process are left alone: the library takes itself out of the environment. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long seen;
static long at;
static pid_t owner;
static char how, calls[512], under[4096];
static int out = -1;

static void copy(char *to, size_t size, const char *name) {
    const char *found = getenv(name);
    if (found != NULL) strncpy(to, found, size - 1);
}

__attribute__((constructor)) static void begin(void) {
    char place[4096] = "", word[16] = "";
    copy(place, sizeof place, "FAULT_LOG");
    copy(word, sizeof word, "FAULT_HOW");
    copy(calls, sizeof calls, "FAULT_CALLS");
    copy(under, sizeof under, "FAULT_UNDER");
    at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
    how = word[0];
    owner = getpid();
    if (place[0]) out = open(place, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (const char **name = (const char *[]){"LD_PRELOAD", "FAULT_AT", "FAULT_HOW", "FAULT_CALLS",
                                              "FAULT_UNDER", "FAULT_LOG", NULL}; *name; name++)
        unsetenv(*name);
}

static void say(const char *text) {
    if (out >= 0) syscall(SYS_write, out, text, strlen(text));
}

/* Whether this is the call; a write of one byte cannot be halved. */
static int hit(const char *name, int fd, size_t size) {
    char key[32], link[64], path[4096];
    if (owner != getpid()) return 0;
    snprintf(key, sizeof key, ",%s,", name);
    if (strstr(calls, key) == NULL) return 0;
    if (under[0]) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = fd < 0 ? -1 : readlink(link, path, sizeof path - 1);
        if (length < 0) return 0;
        path[length] = 0;
        if (strncmp(path, under, strlen(under)) != 0) return 0;
    }
    if ((how == 't' || how == 's') && size < 2) return 0;
    long number = atomic_fetch_add(&seen, 1) + 1;
    snprintf(key, sizeof key, "%s\n", name);
    say(key);
    if (number != at) return 0;
    say("fired\n");
    if (how == 'k') kill(owner, SIGKILL);
    return 1;
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (real == NULL) real = dlsym(RTLD_NEXT, name)

#define HALVED(call) \
    do { \
        ssize_t done = (call); \
        if (how == 't') kill(owner, SIGKILL); \
        return done; \
    } while (0)

#define REFUSED do { errno = EIO; return -1; } while (0)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (!hit("write", fd, size)) return real(fd, data, size);
    if (how == 'e') REFUSED;
    HALVED(real(fd, data, size / 2));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    if (!hit("pwrite64", fd, size)) return real(fd, data, size, place);
    if (how == 'e') REFUSED;
    HALVED(real(fd, data, size / 2, place));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    return pwrite64(fd, data, size, place);
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
               socklen_t length) {
    REAL(ssize_t, "sendto", int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    hit("sendto", fd, 0);
    return real(fd, data, size, flags, to, length);
}

ssize_t send(int fd, const void *data, size_t size, int flags) {
    return sendto(fd, data, size, flags, NULL, 0);
}

#define PLAIN(name, fd, parameters, arguments) \
    int name parameters { \
        static int (*real) parameters; \
        if (real == NULL) real = dlsym(RTLD_NEXT, #name); \
        if (hit(#name, fd, 0) && how == 'e') REFUSED; \
        return real arguments; \
    }

PLAIN(fsync, fd, (int fd), (fd))
PLAIN(fdatasync, fd, (int fd), (fd))
PLAIN(ftruncate, fd, (int fd, off_t size), (fd, size))
PLAIN(ftruncate64, fd, (int fd, off64_t size), (fd, size))
PLAIN(rename, -1, (const char *from, const char *to), (from, to))
PLAIN(renameat, -1, (int a, const char *from, int b, const char *to), (a, from, b, to))
PLAIN(renameat2, -1, (int a, const char *from, int b, const char *to, unsigned flags),
      (a, from, b, to, flags))
PLAIN(link, -1, (const char *from, const char *to), (from, to))
PLAIN(linkat, -1, (int a, const char *from, int b, const char *to, int flags),
      (a, from, b, to, flags))
PLAIN(unlink, -1, (const char *path), (path))
PLAIN(unlinkat, -1, (int folder, const char *path, int flags), (folder, path, flags))
PLAIN(rmdir, -1, (const char *path), (path))
PLAIN(mkdir, -1, (const char *path, mode_t mode), (path, mode))
PLAIN(mkdirat, -1, (int folder, const char *path, mode_t mode), (folder, path, mode))
