
static const CompflowComponent COMPONENT = {
    .size = sizeof COMPONENT,
    .kind = PLUGIN_KIND,
    .flags = FLAGS,
    .name = COMPFLOW_TEXT(NAME),
    .summary = COMPFLOW_TEXT(SUMMARY),
    .documentation = COMPFLOW_TEXT(DOCUMENTATION),
    .schema = COMPFLOW_TEXT(SCHEMA),
    .create = create,
    .destroy = destroy,
    .methods = &METHODS,
};

static const CompflowComponent *const COMPONENTS[] = {&COMPONENT};

static const CompflowLibrary LIBRARY = {
    .size = sizeof LIBRARY,
    .name = COMPFLOW_TEXT("compflow-plugin_crate"),
    .version = COMPFLOW_TEXT("0.1.0"),
    .components = COMPONENTS,
    .component_count = 1,
};

const CompflowAbi COMPFLOW_ABI = {COMPFLOW_MAGIC, COMPFLOW_ABI_VERSION, sizeof(CompflowLibrary)};

const CompflowLibrary *compflow_library(CompflowErrorFn sink, void *sink_ctx) {
  (void)sink, (void)sink_ctx; /* would take the reason if there were none to describe */
  return &LIBRARY;
}
