package dev.fieldmesh.app

import android.Manifest
import android.app.ActivityManager
import android.app.ApplicationExitInfo
import android.content.Intent
import android.location.Location
import android.location.LocationManager
import android.os.SystemClock
import android.speech.tts.TextToSpeech
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.Event
import dev.fieldmesh.core.wire.Gps
import dev.fieldmesh.core.wire.Live
import dev.fieldmesh.core.wire.Record
import dev.fieldmesh.core.wire.TrialKey
import dev.fieldmesh.core.wire.TrialView
import dev.fieldmesh.core.wire.Verdict
import dev.fieldmesh.device.LocationService
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.cancel
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.android.controller.ServiceController
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowActivityManager.ApplicationExitInfoBuilder
import org.robolectric.shadows.ShadowPowerManager
import org.robolectric.shadows.ShadowSystemClock
import org.robolectric.shadows.ShadowTextToSpeech
import org.robolectric.util.ReflectionHelpers
import java.io.ByteArrayOutputStream
import java.time.Duration
import java.util.Locale
import kotlin.math.abs
import kotlin.test.assertEquals
import kotlin.test.assertTrue

/**
 * More than an hour in the car with the screen off, by Robolectric's clock: the receiver loses its fix, the phone
 * sleeps, a person stops the GPS, and Android ends the app in the middle of a trial that waits for long.
 */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class)
class DriveTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp
    private val said = mutableListOf<Pair<Double, String>>()
    private lateinit var service: ServiceController<LocationService>

    private fun idle() = shadowOf(app.mainLooper).idle()

    /** Without a wake lock the processor sleeps until something comes from outside; a saver ignores the lock. */
    private fun pass(time: Duration, saved: Boolean) {
        if (!saved && ShadowPowerManager.getLatestWakeLock()?.isHeld == true) {
            shadowOf(app.mainLooper).idleFor(time)
        } else {
            ShadowSystemClock.advanceBy(time)
        }
    }

    private fun tell(vararg what: Heard) {
        idle()
        what.forEach { assertTrue(app.heard.tryEmit(it)) }
        idle()
    }

    private fun fix() {
        val location = Location(LocationManager.GPS_PROVIDER).apply {
            latitude = -26.682
            longitude = 27.092
            accuracy = 3f
            speed = 13.9f
            speedAccuracyMetersPerSecond = 0.3f
            elapsedRealtimeNanos = SystemClock.elapsedRealtimeNanos()
        }
        shadowOf(app.getSystemService(LocationManager::class.java)).simulateLocation(location)
        idle()
    }

    private fun readGps() {
        service = Robolectric.buildService(LocationService::class.java, LocationService.intent(app)).create()
        service.startCommand(0, 1)
        idle()
    }

    private fun stopGps() {
        service.get().onStartCommand(Intent("dev.fieldmesh.STOP"), 0, 2)
        service.destroy()
        idle()
    }

    private fun endProcess() {
        ReflectionHelpers.getField<CoroutineScope>(service.get(), "scope").cancel()
        idle()
        app.die()
        ShadowPowerManager.clearWakeLocks()
        val end = ApplicationExitInfoBuilder.newBuilder().setReason(ApplicationExitInfo.REASON_LOW_MEMORY).build()
        shadowOf(app.getSystemService(ActivityManager::class.java)).addApplicationExitInfo(end)
    }

    private fun view(trial: Int, state: String, live: Live? = null, verdict: Verdict? = null): CampaignView =
        States.view.copy(
            state = state,
            current = TrialKey(trial, 1),
            live = live,
            trials = listOf(TrialView(trial, listOfNotNull(verdict))),
        )

    /** An attempt with a window of 30 s: what happens, and what is said of it. */
    private fun attempt(trial: Int, armedS: Double, goS: Double): Map<Double, () -> Unit> = mapOf(
        armedS to { tell(Heard.View(view(trial, "armed"))) },
        goS to { tell(Heard.View(view(trial, "running", Live(remainingS = 30.0)))) },
        goS + 30 to { tell(Heard.View(view(trial, "kept", verdict = Verdict(trial, 1, "accepted", isFinal = true)))) },
    )

    private fun ofWindow(goS: Double) =
        listOf(goS to "measuring", goS + 20 to "10 seconds", goS + 25 to "5 seconds", goS + 30 to "trial done")

    private val happenings = attempt(trial = 3, armedS = 10.25, goS = 60.25) +
        mapOf(250.0 to ::stopGps, 265.0 to ::readGps) +
        attempt(trial = 7, armedS = 300.25, goS = 4700.25) +
        mapOf(
            1000.25 to ::endProcess,
            1040.25 to {
                readGps()
                tell(Heard.Plan(States.schedule), Heard.View(view(7, "armed")))
            },
        )

    /** In a pocket between two trials, by a phone whose maker saves power. */
    private fun isSaved(seconds: Double) = seconds in 150.0..179.0

    /** Under a bridge while a trial waits. */
    private fun hears(seconds: Double) = seconds !in 30.0..49.0 && !isSaved(seconds)

    private fun begin() {
        shadowOf(app).grantPermissions(Manifest.permission.ACCESS_FINE_LOCATION)
        ShadowTextToSpeech.addLanguageAvailability(Locale.ENGLISH)
        app.voice // makes the engine
        shadowOf(ShadowTextToSpeech.getLastTextToSpeechInstance()).onInitListener.onInit(TextToSpeech.SUCCESS)
        app.session.pair(Pairing("127.0.0.1", 1, Pin("ab".repeat(32))))
        app.session.logging = true
        readGps()
        val loaded = States.view.copy(state = "loaded", current = null, trials = emptyList())
        tell(Heard.Plan(States.schedule), Heard.View(loaded))
    }

    private fun drive() {
        val speech = shadowOf(ShadowTextToSpeech.getLastTextToSpeechInstance())
        for (tick in 1..(4800 * TICKS_A_SECOND)) {
            val seconds = tick.toDouble() / TICKS_A_SECOND
            pass(Duration.ofMillis(1000L / TICKS_A_SECOND), isSaved(seconds))
            happenings[seconds]?.invoke()
            if (tick % TICKS_A_SECOND == 0 && hears(seconds)) fix()
            speech.spokenTextList.drop(said.size).forEach { said += seconds to it }
        }
    }

    @Test
    fun `on a long drive every cue comes in time, and every gap of the log has its cause`() {
        begin()
        drive()
        val due = listOf(10.25 to "trial 3", 15.25 to "hold", 30.5 to "no G P S") + ofWindow(60.25) +
            listOf(300.25 to "trial 7", 305.25 to "hold", 1041.0 to "hold") + ofWindow(4700.25)
        assertEquals(
            due.map {
                it.second
            },
            said.zip(due).map { (got, want) -> got.second.take(want.second.length) },
            "$said",
        )
        assertEquals(due.size, said.size, "$said")
        for ((got, want) in said.zip(due)) assertTrue(abs(got.first - want.first) <= 0.5, "$got, due $want")
        assertTrue(ShadowPowerManager.getLatestWakeLock().isHeld, "another trial is to come")
        assertEquals(
            listOf(
                listOf("GPS: no fix", "GPS: a fix again"),
                listOf("GPS: nothing for 30.0 s, the app did not run", "GPS: no fix", "GPS: a fix again"),
                listOf("GPS: it is not read any more", "GPS: it is read"),
                listOf("log: goes on after the app ended: the phone had too little memory", "GPS: it is read"),
            ),
            causes(),
        )
    }

    /** What the log tells in each time of more than three seconds without a place. */
    private fun causes(): List<List<String>> {
        val out = ByteArrayOutputStream().also(app.log::copyTo)
        var lastNs: Long? = null
        val told = mutableListOf<String>()
        val causes = mutableListOf<List<String>>()
        for (record in out.toString().trim().lines().map(Record::decode)) {
            (record.body as? Event)?.let { told += it.text }
            if ((record.body as? Gps)?.latDeg == null) continue
            val before = lastNs ?: record.header.tBootNs
            if (record.header.tBootNs - before > 3_000_000_000) causes += told.toList()
            told.clear()
            lastNs = record.header.tBootNs
        }
        return causes
    }

    private companion object {
        const val TICKS_A_SECOND = 4
    }
}
