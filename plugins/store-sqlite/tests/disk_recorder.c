/* Records what a process writes to a folder and syncs there, in order: preloaded by `test_power_cuts.py`.

Each record is a line "KIND PROCESS THREAD NAME OFFSET LENGTH", followed by LENGTH bytes if KIND is W (write). Other kinds are
T (truncate to OFFSET), B (a sync begins), S (it has ended) and U (unlink). The
   name of the folder is ".". The first thread of a
   process has its number. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int record = -1;
static const char *folder;

__attribute__((constructor)) static void begin(void) {
  folder = getenv("RECORDED_FOLDER");
  record = open(getenv("RECORD"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static const char *name_of(int descriptor, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length < 0 || descriptor == record) return NULL;
  path[length] = 0;
  size_t prefix = strlen(folder);
  if (strcmp(path, folder) == 0) return ".";
  return strncmp(path, folder, prefix) == 0 && path[prefix] == '/' ? path + prefix + 1 : NULL;
}

static void add(char kind, const char *name, long offset, const void *data, size_t length) {
  char head[PATH_MAX + 64];
  int size = snprintf(head, sizeof head, "%c %d %d %s %ld %zu\n", kind, getpid(), gettid(), name, offset, length);
  syscall(SYS_write, record, head, size);
  if (length) syscall(SYS_write, record, data, length);
}

/* Other threads and processes wait, so that the order of the records is the order of the operations. */
static void lock(void) { pthread_mutex_lock(&mutex); flock(record, LOCK_EX); }
static void unlock(void) { flock(record, LOCK_UN); pthread_mutex_unlock(&mutex); }

ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t offset) {
  char path[PATH_MAX];
  const char *name = name_of(descriptor, path);
  if (name == NULL) return syscall(SYS_pwrite64, descriptor, data, length, offset);
  lock();
  ssize_t done = syscall(SYS_pwrite64, descriptor, data, length, offset);
  if (done > 0) add('W', name, offset, data, done);
  unlock();
  return done;
}

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t offset) {
  return pwrite64(descriptor, data, length, offset);
}

ssize_t write(int descriptor, const void *data, size_t length) {
  char path[PATH_MAX];
  const char *name = name_of(descriptor, path);
  if (name == NULL) return syscall(SYS_write, descriptor, data, length);
  lock();
  long offset = lseek(descriptor, 0, SEEK_CUR);
  ssize_t done = syscall(SYS_write, descriptor, data, length);
  if (done > 0) add('W', name, offset, data, done);
  unlock();
  return done;
}

int ftruncate64(int descriptor, off64_t size) {
  char path[PATH_MAX];
  const char *name = name_of(descriptor, path);
  if (name == NULL) return syscall(SYS_ftruncate, descriptor, size);
  lock();
  int failed = syscall(SYS_ftruncate, descriptor, size);
  if (!failed) add('T', name, size, NULL, 0);
  unlock();
  return failed;
}

int ftruncate(int descriptor, off_t size) { return ftruncate64(descriptor, size); }

static int sync_with(long call, int descriptor) {
  char path[PATH_MAX];
  const char *name = name_of(descriptor, path);
  if (name == NULL) return syscall(call, descriptor);
  lock();
  add('B', name, 0, NULL, 0);
  unlock();
  int failed = syscall(call, descriptor);
  lock();
  if (!failed) add('S', name, 0, NULL, 0);
  unlock();
  return failed;
}

int fsync(int descriptor) { return sync_with(SYS_fsync, descriptor); }
int fdatasync(int descriptor) { return sync_with(SYS_fdatasync, descriptor); }

int unlink(const char *path) {
  size_t prefix = strlen(folder);
  if (strncmp(path, folder, prefix) != 0 || path[prefix] != '/') return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  lock();
  int failed = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
  if (!failed) add('U', path + prefix + 1, 0, NULL, 0);
  unlock();
  return failed;
}
