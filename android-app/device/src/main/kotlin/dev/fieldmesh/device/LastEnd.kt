package dev.fieldmesh.device

import android.annotation.TargetApi
import android.app.ActivityManager
import android.app.ApplicationExitInfo
import android.os.Build

/** Why the app's process ended last; null where Android does not tell, as before version 11. */
@TargetApi(Build.VERSION_CODES.R)
fun ActivityManager.lastEnd(): String? {
    if (Build.VERSION.SDK_INT < Build.VERSION_CODES.R) return null
    val last = getHistoricalProcessExitReasons(null, 0, 1).firstOrNull() ?: return null
    return when (last.reason) {
        ApplicationExitInfo.REASON_LOW_MEMORY -> "the phone had too little memory"
        ApplicationExitInfo.REASON_USER_REQUESTED, ApplicationExitInfo.REASON_USER_STOPPED -> "a person ended it"
        ApplicationExitInfo.REASON_CRASH, ApplicationExitInfo.REASON_CRASH_NATIVE -> "it crashed"
        ApplicationExitInfo.REASON_ANR -> "it did not answer"
        ApplicationExitInfo.REASON_PERMISSION_CHANGE -> "a permission was taken away"
        else -> "Android's reason ${last.reason}"
    }
}
