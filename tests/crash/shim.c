/* Counts the calls of one process to the system, over all its threads, and does something at the Nth.

   FAULT_AT      which call, from 1; 0 counts only
   FAULT_HOW     kill: die before it; torn: do half of a write, then die; short: do half of a write;
                 flip: change one bit of what is written; error, error ENOSPC: fail so, else with EIO;
                 error ENOSPC on: that one and all that follow
   FAULT_CALLS   the calls that count, between commas: ",write,fsync,"; "fork" is every way to start a
                 process, "clone" a thread; "create" is an open that may make a file, "open" any other
   FAULT_UNDER   only calls on files whose path begins with one of these, between colons
   FAULT_LOG     a file that gets one line for each call that counts, and "fired" when it is broken

   Programs started by the process are left alone: the library takes itself out of the environment.
   A process that was loaded with it and then forked sets the variables and calls `fault_arm`. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long seen;
static long at;
static pid_t owner;
static int fault, stays;
static char how, calls[512], under[8192];
static int out = -1;

static const struct {
    const char *name;
    int number;
} ERRORS[] = {{"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {"EINTR", EINTR},
              {"EMFILE", EMFILE}, {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN}, {"ENFILE", ENFILE}};

static void copy(char *to, size_t size, const char *name) {
    const char *found = getenv(name);
    to[0] = 0;
    if (found != NULL) strncpy(to, found, size - 1);
}

__attribute__((constructor)) void fault_arm(void) {
    char place[4096], words[64];
    copy(place, sizeof place, "FAULT_LOG");
    copy(words, sizeof words, "FAULT_HOW");
    copy(calls, sizeof calls, "FAULT_CALLS");
    copy(under, sizeof under, "FAULT_UNDER");
    at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
    how = words[0];
    fault = EIO;
    stays = strstr(words, " on") != NULL;
    for (size_t place = 0; place < sizeof ERRORS / sizeof *ERRORS; place++)
        if (strstr(words, ERRORS[place].name) != NULL) fault = ERRORS[place].number;
    owner = getpid();
    atomic_store(&seen, 0);
    if (place[0]) out = open(place, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (const char **name = (const char *[]){"LD_PRELOAD", "FAULT_AT", "FAULT_HOW", "FAULT_CALLS",
                                              "FAULT_UNDER", "FAULT_LOG", NULL}; *name; name++)
        unsetenv(*name);
}

static void say(const char *text) {
    if (out >= 0) syscall(SYS_write, out, text, strlen(text));
}

/* The path of a descriptor, or of a name beneath one. */
static int where(int fd, const char *name, char *path) {
    char link[64];
    if (name != NULL && name[0] == '/') return snprintf(path, PATH_MAX, "%s", name) > 0;
    if (fd < 0 && fd != AT_FDCWD) return 0;
    snprintf(link, sizeof link, fd == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (name != NULL) snprintf(path + length, PATH_MAX - length, "/%s", name);
    return 1;
}

static int is_under(int fd, const char *name) {
    char path[PATH_MAX];
    if (!where(fd, name, path)) return 0;
    for (const char *one = under; *one;) {
        size_t size = strcspn(one, ":");
        if (strncmp(path, one, size) == 0) return 1;
        one += size + (one[size] == ':');
    }
    return 0;
}

/* Whether this is the call; a write of one byte cannot be halved. */
static int hit_at(const char *call, int fd, const char *name, size_t size) {
    char key[32];
    int before = errno;
    if (owner != getpid()) return 0;
    snprintf(key, sizeof key, ",%s,", call);
    if (strstr(calls, key) == NULL) return 0;
    int counts = !under[0] || is_under(fd, name);
    errno = before;
    if (!counts || ((how == 't' || how == 's') && size < 2)) return 0;
    long number = atomic_fetch_add(&seen, 1) + 1;
    snprintf(key, sizeof key, "%s\n", call);
    say(key);
    if (at == 0 || (stays ? number < at : number != at)) return 0;
    say("fired\n");
    if (how == 'k') kill(owner, SIGKILL);
    return 1;
}

static int hit(const char *call, int fd, size_t size) {
    return hit_at(call, fd, NULL, size);
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (real == NULL) real = dlsym(RTLD_NEXT, name)

#define REFUSED do { errno = fault; return -1; } while (0)

/* A write that is broken: `call` writes `part` bytes of `what` at the right place. */
#define BROKEN(call) \
    do { \
        const void *what = data; \
        size_t part = size / 2; \
        char *other = NULL; \
        if (how == 'e') REFUSED; \
        if (how == 'f' && size > 0 && (other = malloc(size)) != NULL) { \
            memcpy(other, data, part = size); \
            other[size / 2] ^= 16; \
            what = other; \
        } \
        ssize_t done = (call); \
        free(other); \
        if (how == 't') kill(owner, SIGKILL); \
        return done; \
    } while (0)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    if (!hit("write", fd, size)) return real(fd, data, size);
    BROKEN(real(fd, what, part));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t place) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    if (!hit("pwrite64", fd, size)) return real(fd, data, size, place);
    BROKEN(real(fd, what, part, place));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t place) {
    return pwrite64(fd, data, size, place);
}

ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
               socklen_t length) {
    REAL(ssize_t, "sendto", int, const void *, size_t, int, const struct sockaddr *, socklen_t);
    if (hit("sendto", fd, 0) && how == 'e') REFUSED;
    return real(fd, data, size, flags, to, length);
}

ssize_t send(int fd, const void *data, size_t size, int flags) {
    return sendto(fd, data, size, flags, NULL, 0);
}

static int opening(const char *call, int folder, const char *path, int flags, mode_t mode) {
    REAL(int, "openat64", int, const char *, int, ...);
    (void)call;
    if (hit_at(flags & O_CREAT ? "create" : "open", folder, path, 0) && how == 'e') REFUSED;
    return real(folder, path, flags, mode);
}

#define OPEN(name, folder, ...) \
    int name(__VA_ARGS__, int flags, ...) { \
        va_list more; \
        va_start(more, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; \
        va_end(more); \
        return opening(#name, folder, path, flags, mode); \
    }

OPEN(open, AT_FDCWD, const char *path)
OPEN(open64, AT_FDCWD, const char *path)
OPEN(openat, folder, int folder, const char *path)
OPEN(openat64, folder, int folder, const char *path)

static pid_t forked(void) {
    REAL(pid_t, "fork", void);
    if (hit("fork", -1, 0) && how == 'e') REFUSED;
    return real();
}

pid_t fork(void) { return forked(); }

/* A child of `vfork` may not return from here: where that is known how, it returns from the real one to the
   caller; elsewhere it is a child of `fork`, which copies the tables of a large process. */
#ifdef __x86_64__
static void *real_vfork __attribute__((used));

static int vfork_refused(void) __attribute__((used));
static int vfork_refused(void) {
    if (real_vfork == NULL) real_vfork = dlsym(RTLD_NEXT, "vfork");
    if (!hit("fork", -1, 0) || how != 'e') return 0;
    errno = fault;
    return 1;
}

__asm__(".text\n.globl vfork\n.type vfork, @function\nvfork:\n"
        "  sub $8, %rsp\n  call vfork_refused\n  add $8, %rsp\n"
        "  test %eax, %eax\n  jne 1f\n"
        "  mov real_vfork(%rip), %rax\n  jmp *%rax\n"
        "1:\n  mov $-1, %eax\n  ret\n.size vfork, .-vfork\n");
#else
pid_t vfork(void) { return forked(); }
#endif

int pthread_create(pthread_t *thread, const pthread_attr_t *more, void *(*start)(void *), void *with) {
    REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (hit("clone", -1, 0) && how == 'e') return fault;
    return real(thread, more, start, with);
}

#define PLAIN_AT(type, name, call, fd, path, parameters, arguments) \
    type name parameters { \
        static type (*real) parameters; \
        if (real == NULL) real = dlsym(RTLD_NEXT, #name); \
        if (hit_at(call, fd, path, 0) && how == 'e') REFUSED; \
        return real arguments; \
    }
#define PLAIN(name, fd, path, parameters, arguments) \
    PLAIN_AT(int, name, #name, fd, path, parameters, arguments)

PLAIN_AT(ssize_t, read, "read", fd, NULL, (int fd, void *data, size_t size), (fd, data, size))
PLAIN_AT(ssize_t, pread64, "pread64", fd, NULL, (int fd, void *data, size_t size, off64_t place),
         (fd, data, size, place))
PLAIN(fsync, fd, NULL, (int fd), (fd))
PLAIN(fdatasync, fd, NULL, (int fd), (fd))
PLAIN(ftruncate, fd, NULL, (int fd, off_t size), (fd, size))
PLAIN(ftruncate64, fd, NULL, (int fd, off64_t size), (fd, size))
PLAIN(rename, AT_FDCWD, to, (const char *from, const char *to), (from, to))
PLAIN(renameat, b, to, (int a, const char *from, int b, const char *to), (a, from, b, to))
PLAIN(renameat2, b, to, (int a, const char *from, int b, const char *to, unsigned flags),
      (a, from, b, to, flags))
PLAIN(link, AT_FDCWD, to, (const char *from, const char *to), (from, to))
PLAIN(linkat, b, to, (int a, const char *from, int b, const char *to, int flags),
      (a, from, b, to, flags))
PLAIN(unlink, AT_FDCWD, path, (const char *path), (path))
PLAIN(unlinkat, folder, path, (int folder, const char *path, int flags), (folder, path, flags))
PLAIN(rmdir, AT_FDCWD, path, (const char *path), (path))
PLAIN(mkdir, AT_FDCWD, path, (const char *path, mode_t mode), (path, mode))
PLAIN(mkdirat, folder, path, (int folder, const char *path, mode_t mode), (folder, path, mode))
PLAIN(fchmod, fd, NULL, (int fd, mode_t mode), (fd, mode))
PLAIN(connect, fd, NULL, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))
PLAIN(socket, -1, NULL, (int domain, int type, int protocol), (domain, type, protocol))
PLAIN(socketpair, -1, NULL, (int domain, int type, int protocol, int pair[2]),
      (domain, type, protocol, pair))
PLAIN(pipe2, -1, NULL, (int pair[2], int flags), (pair, flags))
PLAIN(epoll_create1, -1, NULL, (int flags), (flags))
PLAIN(memfd_create, -1, NULL, (const char *name, unsigned flags), (name, flags))
