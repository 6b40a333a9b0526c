package dev.fieldmesh.app

import android.app.Application
import android.hardware.camera2.CameraManager
import android.os.SystemClock
import dev.fieldmesh.app.screen.cueText
import dev.fieldmesh.core.agent.Identity
import dev.fieldmesh.device.BackCamera
import dev.fieldmesh.device.LocationHost
import dev.fieldmesh.device.PhoneLog
import dev.fieldmesh.device.Pictures
import dev.fieldmesh.device.Preferences
import dev.fieldmesh.device.Session
import dev.fieldmesh.device.SpokenVoice
import dev.fieldmesh.device.Wording
import dev.fieldmesh.device.keystoreIdentity
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.MainScope
import java.io.File

/**
 * Holds what outlives every screen. A process that ended starts here again, and follows the node that it was
 * paired with.
 */
open class Fieldmesh :
    Application(),
    LocationHost {
    override val nowNs: () -> Long = SystemClock::elapsedRealtimeNanos
    val log by lazy { PhoneLog(File(filesDir, "logs")) }
    override val preferences by lazy { Preferences(this) }
    override val wording by lazy {
        Wording(
            getString(R.string.channel),
            getString(R.string.notification_title),
            getString(R.string.notification_text),
            getString(R.string.notification_stop),
            R.drawable.ic_mesh,
            MainActivity::class.java,
        )
    }
    override val session by lazy {
        val voice = SpokenVoice(this, preferences::spokenCues) { cueText(it) }
        Session(MainScope(), Dispatchers.IO, preferences, ::identity, nowNs, log, voice).also(Session::start)
    }

    /** Whether the location service was asked for; it may be running before any screen is. */
    var gpsWanted = false

    /** For what would hold up the screens. */
    open val worker: CoroutineDispatcher = Dispatchers.Default
    open val pictures: Pictures by lazy { BackCamera(getSystemService(CameraManager::class.java)) }

    open fun identity(): Identity = keystoreIdentity()
}
