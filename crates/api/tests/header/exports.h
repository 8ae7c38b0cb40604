/* What a library defines: the datum, read before any function is called,
 *
 *     COMPFLOW_EXPORT const CompflowAbi COMPFLOW_ABI = {
 *         COMPFLOW_MAGIC, COMPFLOW_ABI_VERSION, sizeof(CompflowLibrary)};
 *
 * and the function that describes the components. */
#ifdef __cplusplus
extern "C" {
#endif
COMPFLOW_EXPORT extern const CompflowAbi COMPFLOW_ABI;
COMPFLOW_EXPORT const CompflowLibrary *compflow_library(CompflowErrorFn sink, void *sink_ctx);
#ifdef __cplusplus
}
#endif

#endif /* COMPFLOW_H */
