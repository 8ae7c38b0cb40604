/* Components that do what they must not, and say that all went well. */

#define _GNU_SOURCE

#include "compflow_util.h"

#include <fcntl.h>
#include <fenv.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* What the start-up code of a library built with -ffast-math does: flush small numbers to zero. */
__attribute__((constructor)) static void fast_math(void) {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

/* Notes that the process ended in order, taking this library's memory away from threads that may still run in it. */
__attribute__((destructor)) static void end(void) {
  const char *path = getenv("WRONG_ENDS");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (file) fclose(file);
}

/* Becomes another file while it is being opened. */
__attribute__((constructor)) static void change(void) {
  const char *path = getenv("WRONG_CHANGES");
  FILE *file = path ? fopen(path, "ab") : NULL;
  if (file) {
    fputc(0, file);
    fclose(file);
  }
}

/* Keeps whoever opens it waiting, or leaves another process behind and ends its own. */
__attribute__((constructor)) static void wait_or_fork(void) {
  while (getenv("WRONG_SLEEPS")) sleep(1);
  if (!getenv("WRONG_FORKS")) return;
  if (fork() == 0) {
    sleep(30);
    _exit(0);
  }
  abort();
}

/* Goes on in two processes. */
static void fork_at(const char *where) {
  const char *forks = getenv("WRONG_TWINS");
  if (forks && strcmp(forks, where) == 0 && fork() < 0) abort();
}

__attribute__((constructor)) static void fork_while_opened(void) { fork_at("open"); }

/* Ends the process as nobody hears of. */
static void quit_at(const char *where) {
  const char *quits = getenv("WRONG_QUITS");
  if (quits && strcmp(quits, where) == 0) _exit(0);
  const char *aborts = getenv("WRONG_ABORTS");
  if (aborts && strcmp(aborts, where) == 0) abort();
}

/* Closes what is open, or writes into it. */
static void spoil(int first, int scribble) {
  char garbage[64];
  memset(garbage, 0xff, sizeof garbage);
  for (int file = first; file < 64; file++) {
    if (!scribble) close(file);
    else if (fcntl(file, F_SETFL, O_NONBLOCK) == 0 && write(file, garbage, sizeof garbage) < 0) continue;
  }
}

/* Leaves a process behind that belongs to nobody, and its number. */
static void leave_process(void) {
  const char *path = getenv("WRONG_LEAVES");
  pid_t left = fork();
  if (left == 0) {
    setsid();
    sleep(60);
    _exit(0);
  }
  while (getsid(left) != left) continue;
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!file) return;
  fprintf(file, "%d\n", (int)left);
  fclose(file);
}

static const char SCHEMA[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "\"mode\": {\"type\": \"string\", \"default\": \"fine\"}}}";

typedef struct {
  char mode[32], path[1024], first;
} Instance;

static int is(const void *instance, const char *mode) { return strcmp(((const Instance *)instance)->mode, mode) == 0; }

static void take_path(void *instance, CompflowStr path) {
  snprintf(((Instance *)instance)->path, sizeof ((Instance *)instance)->path, "%.*s", (int)path.len, (const char *)path.ptr);
}

static void take_file(void *instance, CompflowStr path, const uint8_t *content, uint64_t length) {
  take_path(instance, path);
  if (length) ((Instance *)instance)->first = (char)content[0];
}

/* Somebody writes to the file that was asked for, before it is read. */
static void overwrite(const void *instance) {
  FILE *file = fopen(((const Instance *)instance)->path, "w");
  if (file) {
    fputs("B", file);
    fclose(file);
  }
}

static int32_t create(CompflowStr params, const CompflowHost *host, void **instance) {
  Instance made = {"fine", "", 0};
  CompflowParam param;
  const char *at = NULL;
  while (compflow_next_param(params, &at, &param)) {
    if (strcmp(param.name, "mode") != 0 || param.kind != 's') return compflow_unknown(host, &param);
    snprintf(made.mode, sizeof made.mode, "%.*s", (int)param.length, param.value);
  }
  if (is(&made, "nest")) {
    CompflowInstance inner;
    return host->create(host->ctx, COMPFLOW_KIND_CLUSTERER, compflow_str("wrong"), params, &inner, host->error, host->ctx);
  }
  if (is(&made, "lazy")) {
    int32_t status = host->input(host->ctx, compflow_str("w.bin"), take_path, &made, host->error, host->ctx);
    if (status) return status;
  }
  if (is(&made, "eager")) {
    if (!COMPFLOW_HAS(host, CompflowHost, content)) return compflow_fail(host, "this compflow hands no content on");
    int32_t status = host->content(host->ctx, compflow_str("w.bin"), take_file, &made, host->error, host->ctx);
    if (status) return status;
  }
  if (is(&made, "lenient")) umask(0); /* for everybody else as well */
  if (is(&made, "go") && chdir("/") != 0) return compflow_fail(host, "there is no root");
  while (is(&made, "hang")) sleep(1);
  char heard;
  while (is(&made, "listen") && read(0, &heard, 1) > 0) continue;
  quit_at("create");
  fork_at("create");
  if (is(&made, "shout")) host->log(host->ctx, COMPFLOW_LOG_WARN, compflow_str("\033[2J\033]0;gone\007 look\nerror: forged"));
  *instance = compflow_copy(&made, sizeof made);
  return *instance ? COMPFLOW_STATUS_OK : compflow_no_memory(host);
}

static int32_t destroy(void *instance, const CompflowHost *host) {
  (void)host;
  quit_at("destroy");
  fork_at("destroy");
  free(instance);
  return COMPFLOW_STATUS_OK;
}

/* ---- clusterer ---- */

static int32_t memory(void *instance, const CompflowShape *shape, const CompflowHost *host, uint64_t *bytes) {
  (void)shape, (void)host;
  *bytes = is(instance, "hungry") ? UINT64_C(1) << 50 : is(instance, "large") ? UINT64_C(600) << 20 : 0;
  return COMPFLOW_STATUS_OK;
}

/* Ends the process when the cell has long ended. */
static void *end_later(void *nothing) {
  usleep(300000);
  abort();
  return nothing;
}

/* Logs a line that nobody can read. */
static void log_much(const CompflowHost *host) {
  size_t length = 20000000;
  char *text = malloc(length + 1);
  if (!text) return;
  memset(text, 'x', length);
  text[length] = 0;
  host->log(host->ctx, COMPFLOW_LOG_WARN, compflow_str(text));
  free(text);
}

static int32_t cluster(void *instance, const CompflowTask *task, const CompflowHost *host, CompflowClustering *out) {
  if (is(instance, "close")) spoil(3, 0);
  if (is(instance, "close_all")) spoil(0, 0);
  if (is(instance, "scribble")) spoil(3, 1);
  if (is(instance, "leave")) leave_process();
  if (is(instance, "print")) printf("hello in C\nwithout an end");
  if (is(instance, "end_thread")) pthread_exit(NULL);
  pthread_t later;
  if (is(instance, "late") && pthread_create(&later, NULL, end_later, NULL)) return compflow_fail(host, "no thread");
  if (is(instance, "slow")) sleep(1);
  if (is(instance, "verbose")) log_much(host);
  if (is(instance, "few_files") && setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3}) != 0) return compflow_fail(host, "no limit was set");
  fork_at("cluster");
  if (is(instance, "cancel")) return COMPFLOW_STATUS_CANCELLED;
  if (is(instance, "shout")) return compflow_fail(host, "\033[31mred\033[0m and loud\nerror: forged");
  if (is(instance, "complain")) compflow_fail(host, "this went badly wrong"); /* and goes on */
  if (is(instance, "overwrite")) ((float *)task->embeddings)[0] += 1;
  if (is(instance, "lazy")) overwrite(instance);
  if (is(instance, "eager")) {
    overwrite(instance);
    if (((const Instance *)instance)->first != 'A') return compflow_fail(host, "this is not what was there at first");
  }
  if (is(instance, "round")) {
    fesetround(FE_TOWARDZERO);
    fast_math();
  }
  if (is(instance, "settle")) { /* for everybody else as well */
    setlocale(LC_ALL, "C.UTF-8");
    umask(0);
  }
  if (is(instance, "look") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0) return compflow_fail(host, "somebody has set a locale");
  uint64_t n = task->rows;
  uint32_t wide[] = {0, 1, 2}, *zeros = calloc(n, sizeof *zeros);
  uint64_t *begins = calloc(n + 1, sizeof *begins), ends[] = {0, 1};
  double *numbers = calloc(n, sizeof *numbers);
  float *shares = calloc(n * (n + 1), sizeof *shares);
  for (uint64_t at = 0; at <= n; at++) begins[at] = is(instance, "none") ? at / 2 : at; /* every other one to nothing */
  CompflowClustering found;
  compflow_clustering_begin(&found);
  found.converged = 1;
  int problem = compflow_table_begin(&found.assignments, n, 3);
  if (!problem) problem = compflow_table_sets(&found.assignments, "clusters", begins, zeros);
  if (!problem) problem = compflow_table_begin(&found.clusters, is(instance, "wide") ? 2 : 1, 1);
  if (!problem && is(instance, "wide")) {
    uint32_t members[] = {0, 0, 1, 2};
    uint64_t both[] = {0, 1, 4};
    problem = compflow_table_sets(&found.clusters, "clusters", both, members);
  } else if (!problem) {
    problem = compflow_table_sets(&found.clusters, "clusters", ends, wide);
  }
  if (is(instance, "twins")) {
    if (!problem) problem = compflow_table_doubles(&found.assignments, "margin", numbers);
    if (!problem) problem = compflow_table_doubles(&found.assignments, "margin", numbers);
  }
  if (!problem && is(instance, "crowd")) problem = compflow_table_vectors(&found.assignments, "memberships", n + 1, shares);
  if (!problem && is(instance, "vague")) {
    shares[n - 1] = NAN;
    problem = compflow_table_vectors(&found.assignments, "memberships", 1, shares);
  }
  CompflowStr twice[] = {compflow_str("gap"), compflow_str("gap")}, one[] = {compflow_str("1"), compflow_str("1")};
  if (!problem && is(instance, "same_scalars")) {
    problem = compflow_table_begin(&found.scalars, 2, 2);
    if (!problem) problem = compflow_table_texts(&found.scalars, "name", twice);
    if (!problem) problem = compflow_table_doubles(&found.scalars, "value", numbers);
  }
  int is_unreadable = is(instance, "unreadable");
  if (is_unreadable) twice[0] = compflow_str("gap\n");
  if (!problem && (is_unreadable || is(instance, "same_resolved"))) {
    problem = compflow_table_begin(&found.resolved, 2, 2);
    if (!problem) problem = compflow_table_texts(&found.resolved, "name", twice);
    if (!problem) problem = compflow_table_texts(&found.resolved, "value", one);
  }
  int32_t status = problem ? compflow_fail_table(host, problem) : COMPFLOW_STATUS_OK;
  if (!status) compflow_clustering_give(out, &found);
  compflow_clustering_release(&found);
  free(zeros), free(begins), free(numbers), free(shares);
  return status;
}

static const CompflowClustererMethods CLUSTERER = {.size = sizeof CLUSTERER, .memory = memory, .cluster = cluster};

/* ---- composer: never writes its output ---- */

static int32_t dim_of(void *instance, const CompflowHost *host, uint64_t *dim) {
  (void)instance, (void)host;
  *dim = 0;
  return COMPFLOW_STATUS_OK;
}

static int32_t compose(void *instance, uint64_t rows, uint64_t dim, const float *left, const float *right, float *out,
                       const CompflowHost *host) {
  (void)instance, (void)rows, (void)dim, (void)left, (void)right, (void)out, (void)host;
  return COMPFLOW_STATUS_OK;
}

static const CompflowComposerMethods COMPOSER = {.size = sizeof COMPOSER, .dim = dim_of, .compose = compose};

/* ---- loader: returns embeddings, whatever else was asked for; or ends the process if nothing else was ---- */

static int rounding_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  fesetround(FE_TOWARDZERO);
  return compflow_stream_next(stream, out);
}

static int32_t load(void *instance, const CompflowLoadRequest *request, const CompflowHost *host,
                    struct ArrowArrayStream *out) {
  fork_at("load");
  int is_lonely = is(instance, "lonely");
  if (is_lonely && request->column_count == 1) abort();
  float values[64];
  double numbers[32];
  for (int at = 0; at < 64; at++) values[at] = (float)((at * 37) % 64) / 7;
  for (int at = 0; at < 32; at++) numbers[at] = 1;
  CompflowTable table;
  int problem = compflow_table_begin(&table, 32, is_lonely ? 2 : 1);
  if (!problem) problem = compflow_table_vectors(&table, "embedding", 2, values);
  if (!problem && is_lonely) problem = compflow_table_doubles(&table, "weight", numbers);
  if (problem) return compflow_fail_table(host, problem);
  if (compflow_stream(out, &table)) return compflow_no_memory(host);
  if (is(instance, "round")) out->get_next = rounding_next;
  return COMPFLOW_STATUS_OK;
}

static const CompflowLoaderMethods LOADER = {.size = sizeof LOADER, .load = load};

/* ---- evaluator ---- */

static int32_t metrics(void *instance, const CompflowHost *host, CompflowMetricFn sink, void *sink_ctx) {
  (void)instance, (void)host;
  CompflowMetric metric = {.size = sizeof metric, .unit = COMPFLOW_UNIT_COUNT, .name = compflow_str("wrong"), .most = 600, .larger_is_better = 1};
  sink(sink_ctx, &metric);
  return COMPFLOW_STATUS_OK;
}

static int32_t evaluate(void *instance, const CompflowEvaluation *evaluation, const CompflowHost *host,
                        CompflowScoreFn sink, void *sink_ctx) {
  (void)host;
  fork_at("evaluate");
  if (is(instance, "cancel")) return COMPFLOW_STATUS_CANCELLED;
  if (is(instance, "lazy")) overwrite(instance);
  if (is(instance, "overwrite") && evaluation->truth) ((uint32_t *)evaluation->truth->values)[0] ^= 1;
  sink(sink_ctx, compflow_str("wrong"), is(instance, "beyond") ? 601 : 6);
  return COMPFLOW_STATUS_OK;
}

static const CompflowEvaluatorMethods EVALUATOR = {.size = sizeof EVALUATOR, .metrics = metrics, .evaluate = evaluate};

#define COMPONENT(of_kind, its_methods)                                                                          \
  {                                                                                                              \
    .size = sizeof(CompflowComponent), .kind = of_kind, .name = COMPFLOW_TEXT("wrong"),                          \
    .summary = COMPFLOW_TEXT("\033[31mnot to be trusted\nerror: forged"), .schema = COMPFLOW_TEXT(SCHEMA), .create = create, \
    .destroy = destroy, .methods = &its_methods, .flags_of = flags_of                                            \
  }

static int32_t flags_of(void *instance, const CompflowHost *host, uint64_t *flags) {
  (void)host;
  quit_at("flags");
  fork_at("flags");
  *flags = is(instance, "none") ? COMPFLOW_ASSIGNS_NONE : 0;
  return COMPFLOW_STATUS_OK;
}

static const CompflowComponent ALL[] = {
    COMPONENT(COMPFLOW_KIND_LOADER, LOADER),
    COMPONENT(COMPFLOW_KIND_COMPOSER, COMPOSER),
    COMPONENT(COMPFLOW_KIND_CLUSTERER, CLUSTERER),
    COMPONENT(COMPFLOW_KIND_EVALUATOR, EVALUATOR),
};

static const CompflowComponent *const COMPONENTS[] = {&ALL[0], &ALL[1], &ALL[2], &ALL[3]};

static const CompflowLibrary LIBRARY = {
    .size = sizeof LIBRARY,
    .name = COMPFLOW_TEXT("compflow-wrong"),
    .version = COMPFLOW_TEXT("1"),
    .components = COMPONENTS,
    .component_count = 4,
};

/* The same, of another mind about what it offers. */
static const CompflowLibrary LESS = {
    .size = sizeof LESS,
    .name = COMPFLOW_TEXT("compflow-wrong"),
    .version = COMPFLOW_TEXT("1"),
    .components = COMPONENTS,
    .component_count = 1,
};

const CompflowAbi COMPFLOW_ABI = {COMPFLOW_MAGIC, COMPFLOW_ABI_VERSION, sizeof(CompflowLibrary)};

const CompflowLibrary *compflow_library(CompflowErrorFn sink, void *sink_ctx) {
  (void)sink, (void)sink_ctx;
  fork_at("describe");
  return getenv("WRONG_LESS") ? &LESS : &LIBRARY;
}
