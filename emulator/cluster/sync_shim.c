/* Keeps the sync ledger of a program that knows nothing of it, such as a JVM (LD_PRELOAD).
 *
 * The ledger's form is that of emulator/storage/sync_ledger.py. Only what a power loss could undo is noted: syncs, names,
 * and before anything durable goes, its bytes or a hard link. Writes are not looked at: how long a file is the disk tells.
 * What is durable is not known here either, so every removed file and every cut byte is kept; the reader of the ledger
 * sorts out what never was durable. Names must need no escapes in JSON; those of Kafka and ZooKeeper need none.
 *
 *     LASTSTAND_SYNC_ROOT      the directory below which files are looked at
 *     LASTSTAND_SYNC_LEDGER    the ledger's folder, outside of it, on the same disk
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define DELETED " (deleted)" /* what Linux appends to the path of an open file without a name */

static char root[PATH_MAX];
static char kept[PATH_MAX];
static int ledger = -1;

__attribute__((constructor)) static void open_ledger(void)
{
    const char *directory = getenv("LASTSTAND_SYNC_ROOT"), *folder = getenv("LASTSTAND_SYNC_LEDGER");
    char path[PATH_MAX];
    if (directory == NULL || folder == NULL || realpath(directory, root) == NULL)
        return;
    snprintf(kept, sizeof kept, "%s/kept", folder);
    snprintf(path, sizeof path, "%s/ledger.jsonl", folder);
    ledger = NEXT(open)(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (ledger < 0) {
        perror(path);
        _exit(1);
    }
}

/* Appends one line with one write. A ledger with a gap would let a power loss take what is durable. */
static void note(const char *line, size_t length)
{
    if (write(ledger, line, length) != (ssize_t)length) {
        perror("sync ledger");
        abort();
    }
}

__attribute__((format(printf, 1, 2))) static void notef(const char *format, ...)
{
    char line[PATH_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    note(line, length);
}

/* How long the ledger is: what a sync that begins now has seen of it. */
static long ledger_length(void)
{
    struct stat status;
    return fstat(ledger, &status) == 0 ? (long)status.st_size : 0;
}

static int is_below_root(const char *path)
{
    size_t length = strlen(root);
    return ledger >= 0 && strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* Finds the status of what a name stands for, if it is below the root. */
static int find(const char *path, struct stat *status)
{
    char copy[PATH_MAX], directory[PATH_MAX];
    if (ledger < 0 || strlen(path) >= sizeof copy || lstat(path, status) != 0)
        return 0;
    strcpy(copy, path);
    char *slash = strrchr(copy, '/');
    if (slash != NULL)
        *slash = '\0';
    return realpath(slash == NULL ? "." : *copy == '\0' ? "/" : copy, directory) != NULL && is_below_root(directory);
}

/* Notes the name that a file or directory has got. */
static void note_name(const char *path, ino_t inode)
{
    char copy[PATH_MAX];
    struct stat parent;
    strcpy(copy, path); /* find() has seen that it fits */
    char *slash = strrchr(copy, '/');
    const char *name = slash == NULL ? path : path + (slash - copy) + 1;
    if (slash != NULL)
        *slash = '\0';
    if (stat(slash == NULL ? "." : copy, &parent) == 0)
        notef("[\"name\",%lu,%lu,\"%s\"]\n", (unsigned long)inode, (unsigned long)parent.st_ino, name);
}

static void note_no_name(ino_t inode)
{
    notef("[\"name\",%lu,0,null]\n", (unsigned long)inode);
}

/* Finds the path of an open file, if that is below the root. */
static int path_of(int fd, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = ledger < 0 ? -1 : readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = '\0';
    return length > 0 && is_below_root(path);
}

/* --- What is kept before it goes -------------------------------------------------------------------------------- */

/* Holds on to a file that is about to lose a name. */
static void keep_file(const char *path, const struct stat *status)
{
    char target[PATH_MAX + 32];
    snprintf(target, sizeof target, "%s/%lu", kept, (unsigned long)status->st_ino);
    if (link(path, target) != 0 && errno != EEXIST)
        notef("[\"forget\",%lu]\n", (unsigned long)status->st_ino);
}

/* Keeps the bytes of a file from size on; without what was never written, of which Kafka's indexes have megabytes. */
static void keep_cut(const char *path, const struct stat *status, off_t size)
{
    static unsigned int next;
    char target[PATH_MAX + 32], block[65536];
    unsigned int number;
    int from = NEXT(open)(path, O_RDONLY | O_CLOEXEC), to;
    do {
        number = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED);
        snprintf(target, sizeof target, "%s/cut-%u", kept, number);
        to = NEXT(open)(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    } while (to < 0 && errno == EEXIST);
    off_t at = size;
    int is_kept = from >= 0 && to >= 0 && NEXT(ftruncate)(to, status->st_size - size) == 0;
    while (is_kept && (at = lseek(from, at, SEEK_DATA)) >= 0 && at < status->st_size) {
        size_t left = status->st_size - at;
        ssize_t count = pread(from, block, left < sizeof block ? left : sizeof block, at);
        is_kept = count > 0 && pwrite(to, block, count, at - size) == count;
        at += count;
    }
    if (!is_kept) {
        perror(target);
        abort();
    }
    close(from);
    close(to);
    notef("[\"cut\",%lu,%ld,%ld,%u]\n", (unsigned long)status->st_ino, (long)size, (long)status->st_size, number);
}

static void keep_before_truncation(int fd, off_t size)
{
    char path[PATH_MAX], link[64];
    struct stat status;
    if (path_of(fd, path) && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && size < status.st_size) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd); /* the program's own position must not move */
        keep_cut(link, &status, size);
    }
}

/* --- What is synced --------------------------------------------------------------------------------------------- */

/* Notes that what has this inode is durable, under its newest name, too. */
static void note_sync(const char *path, ino_t inode, off_t size, long seen)
{
    size_t length = strlen(path), suffix = strlen(DELETED);
    const char *slash = strrchr(path, '/');
    char directory[PATH_MAX];
    struct stat parent;
    snprintf(directory, sizeof directory, "%.*s", (int)(slash - path), path);
    if ((length > suffix && strcmp(path + length - suffix, DELETED) == 0) || stat(directory, &parent) != 0)
        notef("[\"sync\",%lu,%ld,0,null,%ld]\n", (unsigned long)inode, (long)size, seen);
    else
        notef("[\"sync\",%lu,%ld,%lu,\"%s\",%ld]\n", (unsigned long)inode, (long)size, (unsigned long)parent.st_ino,
              slash + 1, seen);
}

/* Returns the line for a synced directory, to be freed; NULL if it cannot be read. */
static char *listing(const char *path, ino_t inode, long seen, size_t *length)
{
    char *line = NULL;
    DIR *directory = opendir(path);
    FILE *text = directory == NULL ? NULL : open_memstream(&line, length);
    if (text == NULL)
        return NULL;
    const char *comma = "";
    fprintf(text, "[\"dir\",%lu,{", (unsigned long)inode);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        fprintf(text, "%s\"%s\":%lu", comma, entry->d_name, (unsigned long)entry->d_ino);
        comma = ",";
    }
    fprintf(text, "},%ld]\n", seen);
    fclose(text);
    closedir(directory);
    return line;
}

static int sync_file(int fd, int (*sync)(int))
{
    char path[PATH_MAX], *line = NULL;
    struct stat before, after;
    size_t length = 0;
    long seen = ledger_length();
    int is_noted = path_of(fd, path) && fstat(fd, &before) == 0;
    if (is_noted && S_ISDIR(before.st_mode))
        line = listing(path, before.st_ino, seen, &length); /* what comes later is not certain to be durable */
    int result = sync(fd);
    if (is_noted && result == 0 && line != NULL) {
        note(line, length);
        if (strcmp(path, root) != 0)
            note_sync(path, before.st_ino, 0, seen);
    } else if (is_noted && result == 0 && S_ISREG(before.st_mode) && fstat(fd, &after) == 0) {
        /* shorter if it was truncated meanwhile */
        note_sync(path, before.st_ino, before.st_size < after.st_size ? before.st_size : after.st_size, seen);
    }
    free(line);
    return result;
}

/* Finds the file that is mapped at an address. */
static int mapped_file(const void *address, char *path, struct stat *status)
{
    char line[PATH_MAX + 128];
    int is_found = 0;
    FILE *maps = ledger < 0 ? NULL : fopen("/proc/self/maps", "re");
    while (maps != NULL && !is_found && fgets(line, sizeof line, maps) != NULL) {
        unsigned long start, end;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %4095[^\n]", &start, &end, path) == 3)
            is_found = (unsigned long)address >= start && (unsigned long)address < end;
    }
    if (maps != NULL)
        fclose(maps);
    return is_found && is_below_root(path) && stat(path, status) == 0;
}

/* --- The calls -------------------------------------------------------------------------------------------------- */

int fsync(int fd)
{
    return sync_file(fd, NEXT(fsync));
}

int fdatasync(int fd)
{
    return sync_file(fd, NEXT(fdatasync));
}

int msync(void *address, size_t length, int flags)
{
    char path[PATH_MAX];
    struct stat status;
    long seen = ledger_length();
    int is_noted = (flags & MS_SYNC) != 0 && mapped_file(address, path, &status);
    int result = NEXT(msync)(address, length, flags);
    if (is_noted && result == 0)
        note_sync(path, status.st_ino, status.st_size, seen);
    return result;
}

int ftruncate(int fd, off_t size)
{
    keep_before_truncation(fd, size);
    return NEXT(ftruncate)(fd, size);
}

int ftruncate64(int fd, off64_t size)
{
    keep_before_truncation(fd, size);
    return NEXT(ftruncate64)(fd, size);
}

static mode_t mode_of(int flags, va_list arguments)
{
    int has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
    return has_mode ? va_arg(arguments, mode_t) : 0;
}

static void keep_before_open(const char *path, int flags)
{
    struct stat status;
    if ((flags & O_TRUNC) != 0 && find(path, &status) && S_ISREG(status.st_mode) && status.st_size > 0)
        keep_cut(path, &status, 0);
}

/* Whether a file of that name would be a new one. */
static int is_new(const char *path, int flags)
{
    struct stat status;
    return ledger >= 0 && (flags & O_CREAT) != 0 && lstat(path, &status) != 0;
}

static int note_new(const char *path, int fd)
{
    struct stat status;
    if (fd >= 0 && find(path, &status))
        note_name(path, status.st_ino);
    return fd;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    keep_before_open(path, flags);
    int makes = is_new(path, flags), fd = NEXT(open)(path, flags, mode);
    return makes ? note_new(path, fd) : fd;
}

int open64(const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = mode_of(flags, arguments);
    va_end(arguments);
    keep_before_open(path, flags);
    int makes = is_new(path, flags), fd = NEXT(open64)(path, flags, mode);
    return makes ? note_new(path, fd) : fd;
}

int mkdir(const char *path, mode_t mode)
{
    struct stat status;
    int result = NEXT(mkdir)(path, mode);
    if (result == 0 && find(path, &status))
        note_name(path, status.st_ino);
    return result;
}

int rename(const char *source, const char *target)
{
    struct stat status;
    if (find(target, &status) && S_ISREG(status.st_mode))
        keep_file(target, &status);
    int result = NEXT(rename)(source, target);
    if (result == 0 && find(target, &status))
        note_name(target, status.st_ino);
    return result;
}

int unlink(const char *path)
{
    struct stat status;
    int is_noted = find(path, &status) && S_ISREG(status.st_mode);
    if (is_noted)
        keep_file(path, &status);
    int result = NEXT(unlink)(path);
    if (is_noted && result == 0)
        note_no_name(status.st_ino);
    return result;
}

static int is_empty(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;
    while (directory != NULL && readdir(directory) != NULL)
        count++;
    if (directory != NULL)
        closedir(directory);
    return count == 2; /* itself and its parent */
}

int rmdir(const char *path)
{
    char target[PATH_MAX + 32];
    struct stat status;
    if (!find(path, &status) || !S_ISDIR(status.st_mode) || !is_empty(path))
        return NEXT(rmdir)(path);
    snprintf(target, sizeof target, "%s/%lu", kept, (unsigned long)status.st_ino);
    int result = NEXT(rename)(path, target);
    if (result == 0)
        note_no_name(status.st_ino);
    return result;
}

int remove(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) ? rmdir(path) : unlink(path);
}
