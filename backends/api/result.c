#include "backends/api/result.h"

void al_result_init(struct al_result *r)
{
    *r = (struct al_result){.status = AL_STATUS_FAILED, .reason = AL_REASON_BACKEND};
    al_buf_init(&r->compile.output, AL_COMPILE_OUTPUT_MAX);
}

void al_result_finish(struct al_result *r)
{
    al_buf_finish(&r->compile.output);
    al_artifacts_finish(&r->artifacts);
}
