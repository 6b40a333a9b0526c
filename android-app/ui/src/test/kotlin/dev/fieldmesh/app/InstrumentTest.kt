package dev.fieldmesh.app

import android.Manifest
import android.app.ForegroundServiceStartNotAllowedException
import android.app.Notification
import android.app.Service
import android.content.Context
import android.content.Intent
import android.location.LocationManager
import android.media.AudioManager
import android.provider.Settings
import android.speech.tts.TextToSpeech
import android.view.View
import android.view.WindowManager.LayoutParams.FLAG_KEEP_SCREEN_ON
import android.widget.TextView
import dev.fieldmesh.app.screen.cueText
import dev.fieldmesh.core.agent.AgentException
import dev.fieldmesh.core.agent.Heard
import dev.fieldmesh.core.agent.Pairing
import dev.fieldmesh.core.agent.Pin
import dev.fieldmesh.core.app.AppState
import dev.fieldmesh.core.app.SpeedUnit
import dev.fieldmesh.core.cue.Cue
import dev.fieldmesh.core.drive.LinkState
import dev.fieldmesh.core.drive.Phase
import dev.fieldmesh.core.gps.Fix
import dev.fieldmesh.core.log.StandaloneLog
import dev.fieldmesh.core.wire.CampaignView
import dev.fieldmesh.core.wire.Live
import dev.fieldmesh.core.wire.Record
import dev.fieldmesh.core.wire.TrialView
import dev.fieldmesh.core.wire.Verdict
import dev.fieldmesh.device.LocationService
import dev.fieldmesh.device.RunService
import dev.fieldmesh.device.VoiceState
import org.junit.Test
import org.junit.runner.RunWith
import org.robolectric.Robolectric
import org.robolectric.RobolectricTestRunner
import org.robolectric.RuntimeEnvironment
import org.robolectric.Shadows.shadowOf
import org.robolectric.annotation.Config
import org.robolectric.shadows.ShadowAlertDialog
import org.robolectric.shadows.ShadowPowerManager
import org.robolectric.shadows.ShadowTextToSpeech
import org.robolectric.util.ReflectionHelpers
import java.io.ByteArrayOutputStream
import java.io.File
import java.io.IOException
import java.time.Duration
import java.util.Locale
import kotlin.test.assertContains
import kotlin.test.assertEquals
import kotlin.test.assertFalse
import kotlin.test.assertNotEquals
import kotlin.test.assertNotNull
import kotlin.test.assertNotSame
import kotlin.test.assertNull
import kotlin.test.assertSame
import kotlin.test.assertTrue

/** What an instrument in a car must do by itself, whatever Android does to it. */
@RunWith(RobolectricTestRunner::class)
@Config(application = TestApp::class, qualifiers = "w411dp-h891dp-port-420dpi")
class InstrumentTest {
    private val app get() = RuntimeEnvironment.getApplication() as TestApp
    private val activity by lazy { Robolectric.buildActivity(MainActivity::class.java).setup().get() }

    private fun idle() = shadowOf(app.mainLooper).idle()

    /** The paired node tells something. */
    private fun hear(vararg what: Heard) {
        if (app.session.pairing == null) app.session.pair(Pairing("127.0.0.1", 1, Pin("ab".repeat(32))))
        idle()
        what.forEach { assertTrue(app.heard.tryEmit(it)) }
        idle()
    }

    private fun at(state: String, live: Live? = null): CampaignView = States.view.copy(state = state, live = live)

    private val plan = Heard.Plan(States.schedule)

    private fun text(id: Int) = activity.findViewById<TextView>(id).text.toString()

    @Test
    fun `the screen stays on while a trial is under way, and the processor runs until the last one`() {
        val screenIsKept = { activity.window.attributes.flags and FLAG_KEEP_SCREEN_ON != 0 }
        val isAwake = { ShadowPowerManager.getLatestWakeLock()?.isHeld == true }
        assertFalse(isAwake(), "there is no run")
        hear(plan, Heard.View(at("loaded").copy(current = null)))
        assertFalse(screenIsKept())
        assertTrue(isAwake(), "the first trial may begin at any moment")
        for (state in listOf("armed", "running", "restoring")) {
            hear(Heard.View(at(state)))
            assertTrue(screenIsKept(), state)
            assertTrue(isAwake(), state)
        }
        hear(Heard.View(at("kept")))
        assertFalse(screenIsKept())
        assertTrue(isAwake(), "another trial is to come")
        shadowOf(app.mainLooper).idleFor(Duration.ofMinutes(29))
        assertTrue(isAwake())
        shadowOf(app.mainLooper).idleFor(Duration.ofMinutes(2))
        assertFalse(isAwake(), "people have left the run")
        app.onOpened()
        idle()
        assertTrue(isAwake(), "somebody is back")
        shadowOf(app.mainLooper).idleFor(Duration.ofMinutes(31))
        assertFalse(isAwake(), "and gone again")
        hear(Heard.View(at("armed")))
        shadowOf(app.mainLooper).idleFor(Duration.ofMinutes(45))
        assertTrue(isAwake(), "a trial waits for its gate however long it takes")
        hear(Heard.Lost(AgentException.Unreachable(IOException("no route"))))
        shadowOf(app.mainLooper).idleFor(Duration.ofMinutes(31))
        assertFalse(isAwake(), "the node is not there any more")
        hear(Heard.View(at("armed")))
        assertTrue(isAwake())
        hear(Heard.View(at("kept").copy(ended = true)))
        assertFalse(isAwake(), "the run was paused or ended")
        hear(Heard.View(at("armed")))
        assertTrue(isAwake())
        hear(Heard.NoRun)
        assertFalse(isAwake())
    }

    @Test
    fun `the screen of a phone that is the node stays on between trials too, until people have left`() {
        val screenIsKept = { activity.window.attributes.flags and FLAG_KEEP_SCREEN_ON != 0 }
        app.preferences.nodeWanted = true
        hear(plan)
        assertFalse(screenIsKept(), "there is no run")
        hear(Heard.View(at("kept")))
        assertTrue(screenIsKept())
        shadowOf(app.mainLooper).idleFor(Duration.ofMinutes(31))
        assertFalse(screenIsKept())
    }

    @Test
    fun `what one node told goes when the phone is paired with another`() {
        hear(Heard.Status(States.ready.node!!), plan, Heard.View(at("armed")))
        assertEquals(Phase.ARMED, app.session.state.value.drive.phase)
        app.session.pair(app.session.pairing!!)
        assertEquals(Phase.ARMED, app.session.state.value.drive.phase, "it is the same node")
        app.session.pair(Pairing("127.0.0.1", 2, Pin("cd".repeat(32))))
        val state = app.session.state.value
        assertEquals(LinkState.CONNECTING to Phase.NO_RUN, state.drive.link to state.drive.phase)
        assertNull(state.node)
        assertNull(state.campaign)
    }

    @Test
    fun `while a run is on, a service lets the app follow it, and ends with it`() {
        activity
        hear(plan, Heard.View(at("loaded").copy(current = null)))
        val started = shadowOf(app).nextStartedService
        assertEquals(RunService::class.java.name, started?.component?.className)
        val service = Robolectric.buildService(RunService::class.java, started).create().startCommand(0, 1)
        val shown = shadowOf(service.get()).lastForegroundNotification
        assertEquals(app.getString(R.string.run_title), shown.extras.getString(Notification.EXTRA_TITLE))
        for (state in listOf("armed", "running", "restoring", "kept")) hear(Heard.View(at(state)))
        assertFalse(shadowOf(service.get()).isStoppedBySelf, "another trial is to come")
        hear(Heard.NoRun)
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(30))
        assertFalse(shadowOf(service.get()).isStoppedBySelf, "another run may follow at once")
        hear(plan, Heard.View(at("armed")))
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(61))
        assertFalse(shadowOf(service.get()).isStoppedBySelf, "it has followed")
        hear(Heard.NoRun)
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(61))
        assertTrue(shadowOf(service.get()).isStoppedBySelf)
        service.destroy()
    }

    @Test
    fun `a service that follows a run is started again with the process, and ends when there is no run any more`() {
        val again = Robolectric.buildService(RunService::class.java).create()
        assertEquals(Service.START_STICKY, again.get().onStartCommand(null, 0, 1))
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(30))
        assertFalse(shadowOf(again.get()).isStoppedBySelf, "its node may not have been reached yet")
        shadowOf(app.mainLooper).idleFor(Duration.ofSeconds(31))
        assertTrue(shadowOf(again.get()).isStoppedBySelf)
        again.destroy()
        hear(plan, Heard.View(at("armed")))
        val another = Robolectric.buildService(RunService::class.java).create()
        another.get().onStartCommand(null, 0, 1)
        shadowOf(app.mainLooper).idleFor(Duration.ofMinutes(45))
        assertFalse(shadowOf(another.get()).isStoppedBySelf, "a trial waits for its gate")
        another.get().onStartCommand(Intent("dev.fieldmesh.STOP"), 0, 2)
        assertTrue(shadowOf(another.get()).isStoppedBySelf, "a person has ended it")
        another.destroy()
    }

    /** Whose start Android forbids. */
    class ForbiddenLocation : LocationService() {
        override fun enterForeground(notification: Notification): Unit = throw checkNotNull(forbids)
    }

    /** Whose start Android forbids. */
    class ForbiddenRun : RunService() {
        override fun enterForeground(notification: Notification): Unit = throw checkNotNull(forbids)
    }

    private companion object {
        /** What is thrown at the start of a service that is forbidden. */
        var forbids: RuntimeException? = null
    }

    @Test
    fun `a start of a service that Android forbids ends in peace`() {
        val reasons = listOf(
            ForegroundServiceStartNotAllowedException("the app is in the background"),
            SecurityException("the permission was taken away"),
        )
        for (why in reasons) {
            forbids = why
            for (kind in listOf(ForbiddenLocation::class.java, ForbiddenRun::class.java)) {
                val service = Robolectric.buildService(kind).create()
                assertEquals(Service.START_NOT_STICKY, service.get().onStartCommand(null, 0, 1), "$kind, $why")
                assertTrue(shadowOf(service.get()).isStoppedBySelf, "$kind, $why")
                assertFalse(app.gpsRuns.value, "$kind, $why")
                service.destroy()
            }
        }
    }

    @Test
    fun `the screens know whether the receiver is read, whoever ended that`() {
        shadowOf(app).grantPermissions(Manifest.permission.ACCESS_FINE_LOCATION)
        activity.findViewById<View>(R.id.tab_node).performClick()
        val service = Robolectric.buildService(LocationService::class.java, LocationService.intent(app)).create()
        service.startCommand(0, 1)
        idle()
        assertEquals(app.getString(R.string.gps_stop), text(R.id.gps))
        service.get().onStartCommand(Intent("dev.fieldmesh.STOP"), 0, 2)
        service.destroy()
        idle()
        assertEquals(app.getString(R.string.gps_start), text(R.id.gps))
    }

    @Test
    fun `a location that is switched off or denied leads to where it is given`() {
        activity.findViewById<View>(R.id.tab_node).performClick()
        val location = app.getSystemService(LocationManager::class.java)
        shadowOf(location).setProviderEnabled(LocationManager.GPS_PROVIDER, false)
        assertEquals(
            Settings.ACTION_LOCATION_SOURCE_SETTINGS,
            led {
                activity.findViewById<View>(R.id.gps).performClick()
            },
        )
        val denied = led {
            activity.onRequestPermissionsResult(1, arrayOf(Manifest.permission.ACCESS_FINE_LOCATION), intArrayOf(-1))
        }
        assertEquals(Settings.ACTION_APPLICATION_DETAILS_SETTINGS, denied)
    }

    /** The action of the screen to which the dialog leads that something opens. */
    private fun led(open: () -> Unit): String? {
        open()
        val dialog = ShadowAlertDialog.getLatestAlertDialog()
        dialog.getButton(android.content.DialogInterface.BUTTON_POSITIVE).performClick()
        idle()
        return shadowOf(activity).nextStartedActivity?.action
    }

    @Test
    fun `a storage that is full ends the log and nothing else`() {
        File(app.filesDir, "logs").writeText("where the folder was to be")
        app.session.logging = true
        app.session.take(Fix(1_000_000_000, 3, latDeg = -26.682, lonDeg = 27.092, speedMps = 13.9))
        assertFalse(app.session.logging)
        assertNotNull(app.session.logFault)
        activity.findViewById<View>(R.id.tab_node).performClick()
        assertContains(text(R.id.log_fault), app.session.logFault!!)
        assertEquals(13.9, app.session.state.value.drive.speedMps)
    }

    @Test
    fun `a storage that fills ends the log, which can be saved, and begun again when there is room`() {
        fun take(s: Long) = app.session.take(Fix(s * 1_000_000_000, 3, latDeg = -26.682, lonDeg = 27.092))
        fun saved(): List<Long> {
            val out = ByteArrayOutputStream()
            app.log.copyTo(out)
            return out.toString().trim().lines().map { Record.decode(it).header.tBootNs / 1_000_000_000 }
        }

        /** A file takes what is still to be written, and has no room for it. */
        fun fill() = ReflectionHelpers.setField(app.log, "log", StandaloneLog(File("/dev/full"), "phone", "e"))
        app.session.logging = true
        take(3)
        fill()
        take(6)
        assertFalse(app.session.logging)
        assertNotNull(app.session.logFault)
        assertEquals(listOf(3L), saved())
        app.session.logging = true
        take(9)
        assertNull(app.session.logFault)
        fill()
        take(10)
        app.session.logging = false
        assertEquals(listOf(3L, 9L), saved())
    }

    @Test
    fun `a line that was cut does not take the next log's first line with it`() {
        app.session.logging = true
        app.session.take(Fix(3_000_000_000, 3, latDeg = -26.682, lonDeg = 27.092))
        app.log.end()
        app.log.files.single().appendText("{\"kind\":\"g")
        app.session.take(Fix(6_000_000_000, 3, latDeg = -26.682, lonDeg = 27.092))
        val out = ByteArrayOutputStream()
        app.log.copyTo(out)
        val lines = out.toString().trim().lines()
        assertEquals(listOf(0, 2), lines.indices.filter { "}" in lines[it] })
        assertEquals(6_000_000_000, Record.decode(lines[2]).header.tBootNs)
    }

    @Test
    fun `restore is asked twice in a run, also between its trials`() {
        hear(Heard.Status(States.ready.node!!), plan, Heard.View(at("kept")))
        activity.findViewById<View>(R.id.restore).performClick()
        idle()
        assertNotEquals(app.getString(R.string.restore), text(R.id.restore))
    }

    @Test
    fun `restore is there when there is something to restore`() {
        val restore = { activity.findViewById<View>(R.id.restore).visibility == View.VISIBLE }
        val node = States.ready.node!!
        assertFalse(restore(), "not paired")
        hear(Heard.Status(node.copy(host = node.host.copy(pending = emptyList(), failed = emptyList()))))
        assertFalse(restore(), "nothing is changed")
        hear(Heard.Status(node.copy(host = node.host.copy(pending = listOf("address 10.77.0.1/24 on wlan0")))))
        assertTrue(restore())
    }

    @Test
    fun `one unit is everywhere, also in the node's words`() {
        activity.findViewById<View>(R.id.open_settings).performClick()
        activity.findViewById<View>(R.id.unit_mph).performClick()
        activity.findViewById<View>(R.id.tab_drive).performClick()
        hear(plan, Heard.View(at("armed", Live(speedMps = 13.4112))))
        assertEquals("30", text(R.id.speed))
        assertEquals("mph", text(R.id.unit))
        assertEquals("faster: 20.6 of 31.1 mph", text(R.id.detail).plain())
        assertEquals(app.getString(R.string.speed_of_node), text(R.id.source))
        activity.findViewById<View>(R.id.tab_campaign).performClick()
        assertContains(text(R.id.next), "mph")
        assertFalse("m/s" in text(R.id.next), text(R.id.next))
    }

    @Test
    fun `a throughput that is small is not shown as none`() {
        val view = at("kept").copy(detail = null)
        val result = { bps: Double ->
            val over = Verdict(5, 2, "accepted", isFinal = true, throughputBps = bps)
            hear(plan, Heard.View(view.copy(trials = listOf(TrialView(5, listOf(over))))))
            text(R.id.detail)
        }
        assertEquals("40.0 kbit/s at the receiver", result(4e4))
        assertEquals("14.2 Mbit/s at the receiver", result(1.42e7))
        assertEquals("0.0 Mbit/s at the receiver", result(0.0))
    }

    private fun engine(status: Int, vararg languages: Locale) {
        languages.forEach(ShadowTextToSpeech::addLanguageAvailability)
        app.voice // makes the engine
        shadowOf(ShadowTextToSpeech.getLastTextToSpeechInstance()).onInitListener.onInit(status)
        idle()
    }

    @Test
    fun `cues are spoken in the language of their words, and other sound is lowered meanwhile`() {
        val before = Locale.getDefault()
        try {
            Locale.setDefault(Locale.GERMANY)
            engine(TextToSpeech.SUCCESS, Locale.ENGLISH, Locale.GERMAN)
        } finally {
            Locale.setDefault(before)
        }
        assertEquals(VoiceState.READY, app.voice.state.value)
        app.voice.say(Cue.HOLD, AppState())
        val speech = shadowOf(ShadowTextToSpeech.getLastTextToSpeechInstance())
        assertEquals("hold", speech.lastSpokenText)
        assertEquals("en", speech.currentLanguage.language)
        val sound = shadowOf(app.getSystemService(AudioManager::class.java))
        assertEquals(AudioManager.AUDIOFOCUS_GAIN_TRANSIENT_MAY_DUCK, sound.lastAudioFocusRequest.durationHint)
    }

    @Test
    fun `a phone that is set to German is spoken to in German, and one that changes at once`() {
        engine(TextToSpeech.SUCCESS, Locale.ENGLISH, Locale.GERMAN)
        app.voice.say(Cue.HOLD, AppState())
        RuntimeEnvironment.setQualifiers("+de")
        app.voice.say(Cue.SLOWER, AppState())
        val speech = shadowOf(ShadowTextToSpeech.getLastTextToSpeechInstance())
        assertEquals(listOf("hold", "langsamer"), speech.spokenTextList)
        assertEquals("de", speech.currentLanguage.language)
        RuntimeEnvironment.setQualifiers("+fr")
        app.voice.say(Cue.SLOWER, AppState())
        assertEquals("slower" to "en", speech.lastSpokenText to speech.currentLanguage.language)
    }

    @Test
    fun `a phone without a voice says so on the screen`() {
        activity.findViewById<View>(R.id.tab_drive).performClick()
        engine(TextToSpeech.ERROR)
        assertEquals(app.getString(R.string.voice_none), text(R.id.voice))
        app.preferences.spokenCues = false // then nobody misses it
        activity.findViewById<View>(R.id.tab_drive).performClick()
        assertEquals(View.GONE, activity.findViewById<View>(R.id.voice).visibility)
    }

    /** A voice that is [missing] at first, and there when a person comes back to the app. */
    private fun voiceComes(status: Int, missing: VoiceState) {
        val screen = Robolectric.buildActivity(MainActivity::class.java).setup()
        engine(status)
        val former = ShadowTextToSpeech.getLastTextToSpeechInstance()
        assertEquals(missing, app.voice.state.value)
        screen.pause().stop().start().resume()
        val newest = ShadowTextToSpeech.getLastTextToSpeechInstance()
        assertNotSame(former, newest, "an engine that has answered does not answer again")
        assertTrue(shadowOf(former).isShutdown)
        engine(TextToSpeech.SUCCESS, Locale.ENGLISH)
        app.voice.say(Cue.HOLD, AppState())
        assertEquals(VoiceState.READY to "hold", app.voice.state.value to shadowOf(newest).lastSpokenText)
        screen.pause().stop().start().resume()
        assertSame(newest, ShadowTextToSpeech.getLastTextToSpeechInstance(), "nothing is missing")
    }

    @Test
    fun `an engine that was installed while the app was left is used at its return`() =
        voiceComes(TextToSpeech.ERROR, VoiceState.NO_ENGINE)

    @Test
    fun `a language that was added while the app was left is spoken at its return`() =
        voiceComes(TextToSpeech.SUCCESS, VoiceState.NO_LANGUAGE)

    @Test
    fun `the driver hears target, direction, distance, countdown and what comes next`() {
        val context: Context = app
        val trial = States.ready.trial!!.copy(number = 5, speedMps = 13.8889, direction = "outbound")
        val next = trial.copy(number = 6, speedMps = 8.3333, direction = "inbound")
        val state = States.ready.copy(trial = trial, next = next)
        for ((cue, unit, words) in listOf(
            Triple(Cue.TARGET, SpeedUnit.KMH, "trial 5, 50 kilometres per hour, away from the roadside"),
            Triple(Cue.TARGET, SpeedUnit.MPH, "trial 5, 31 miles per hour, away from the roadside"),
            Triple(Cue.TARGET, SpeedUnit.MPS, "trial 5, 13.9 metres per second, away from the roadside"),
            Triple(Cue.DISTANCE, SpeedUnit.KMH, "143 metres to the gate"),
            Triple(Cue.DONE, SpeedUnit.KMH, "trial done, next, 30 kilometres per hour, towards the roadside"),
        )) {
            assertEquals(words, context.cueText(cue, state, unit))
        }
        val late = state.copy(drive = state.drive.copy(remainingS = 4.6, toGateM = -2.0))
        assertEquals("5 seconds", context.cueText(Cue.COUNTDOWN, late, SpeedUnit.KMH))
        assertNull(context.cueText(Cue.DISTANCE, late, SpeedUnit.KMH), "the gate is passed")
    }

    @Test
    fun `a driver without a target speed hears whether to stand`() {
        val context: Context = app
        val parked = States.ready.trial!!.copy(number = 5, speedMps = null, direction = null)
        for ((kind, words) in mapOf("parked" to "trial 5, standing", "none" to "trial 5, at any speed")) {
            val state = States.ready.copy(trial = parked.copy(course = parked.course.copy(kind = kind)))
            assertEquals(words, context.cueText(Cue.TARGET, state, SpeedUnit.KMH))
        }
    }

    @Test
    fun `an empty page says the next step`() {
        for (tab in listOf(
            R.id.tab_drive to R.id.detail,
            R.id.tab_campaign to R.id.left,
            R.id.tab_node to R.id.next_step,
        )) {
            activity.findViewById<View>(tab.first).performClick()
            assertEquals(app.getString(R.string.next_pair), text(tab.second))
        }
        hear(Heard.NoRun)
        activity.findViewById<View>(R.id.tab_campaign).performClick()
        assertEquals(app.getString(R.string.next_run), text(R.id.left))
    }
}
