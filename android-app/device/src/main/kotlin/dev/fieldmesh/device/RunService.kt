package dev.fieldmesh.device

import android.content.Context
import android.content.Intent
import android.content.pm.ServiceInfo
import kotlinx.coroutines.Job
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.first
import kotlinx.coroutines.launch
import kotlinx.coroutines.withTimeoutOrNull

/** What the service needs of the application; the Application object provides it. */
interface RunHost {
    /** Whether a trial is under way or soon to come. */
    val working: StateFlow<Boolean>
    val runWording: Wording
}

/**
 * Lets the app follow its node while a trial is under way or soon to come, also while another app is open and the
 * receiver is not read: Android freezes an app without a service, and nothing is said then.
 */
open class RunService : ForegroundService("run", 2, ServiceInfo.FOREGROUND_SERVICE_TYPE_CONNECTED_DEVICE) {
    private var following: Job? = null

    override fun onStartCommand(intent: Intent?, flags: Int, startId: Int): Int {
        val host = application as RunHost
        if (intent?.action == STOP || !show(host.runWording)) return end(startId)
        following?.cancel()
        following = scope.launch {
            follow(host.working)
            end(startId)
        }
        return START_STICKY
    }

    /**
     * Ends when there has been no work for a while: a process that Android started again hears of its run first, and
     * between two runs there is a moment without any.
     */
    private suspend fun follow(working: StateFlow<Boolean>) {
        while (withTimeoutOrNull(HEARS_MS) { working.first { it } } != null) working.first { !it }
    }

    companion object {
        /** Far longer than it takes to reach a node that is there. */
        private const val HEARS_MS = 60_000L

        fun intent(context: Context) = Intent(context, RunService::class.java)
    }
}
